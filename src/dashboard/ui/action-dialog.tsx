import { Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";
import type { Answer, CallInput } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { useAction, useWhyNot } from "../data/api.ts";
import { visible } from "../data/format.ts";
import { Button, DialogIconButton, Command } from "./button.tsx";
import { Dialog, type DialogProps } from "./dialog.tsx";
import { useDialog } from "./dialogs.tsx";
import { TextField } from "./field.tsx";
import { Form, type FormProps } from "./form.tsx";
import type { Column } from "./table.tsx";

type FormDialogProps = Omit<FormProps, "onCancel"> & Pick<DialogProps, "title" | "shape">;

interface ActionDialogProps<N extends RouteName> extends Omit<FormDialogProps, "busy" | "onSubmit"> {
  /** The name of the route to call. */
  readonly row: N;
  readonly input: (form: FormData) => CallInput<N>;
  /** Called on success, before the dialog closes. */
  readonly onDone?: (answer: Answer<N>) => void;
  /** A secret in the answer, which is shown only once, before the dialog closes. */
  readonly secret?: {
    readonly title: string;
    readonly of: (answer: Answer<N>) => string | null;
    /** What to say with it, or instead of it. */
    readonly note?: (answer: Answer<N>) => string;
  };
}

export function ActionDialog<N extends RouteName>({ row, input, onDone, secret, why, ...rest }: ActionDialogProps<N>) {
  const action = useAction(row);
  const refused = useWhyNot(row);
  const { finish } = useDialog();
  if (secret !== undefined && action.data !== undefined)
    return <SecretOnce title={secret.title} text={secret.of(action.data)} note={secret.note?.(action.data)} />;
  const send = async (form: FormData) => {
    const answer = await action.mutateAsync(input(form));
    if (secret === undefined) finish();
    onDone?.(answer);
  };
  return <FormDialog {...rest} why={refused ?? why} onSubmit={send} />;
}

export function FormDialog({ title, shape = "dialog", ...form }: FormDialogProps) {
  const { close } = useDialog();
  return (
    <Dialog title={title} shape={shape}>
      <Form {...form} onCancel={close} />
    </Dialog>
  );
}

interface ConfirmActionProps<N extends RouteName> {
  readonly row: N;
  readonly title: string;
  readonly submit: string;
  /** The text that the user must type before the button works. */
  readonly typed: string;
  readonly input: CallInput<N>;
  readonly onDone?: () => void;
  /** The field by which the user chooses what the dialog is about. */
  readonly choice?: ReactNode;
  readonly children: ReactNode;
}

/** A dialog for what can't be undone: the user types the name first. */
export function ConfirmAction<N extends RouteName>({ typed, input, choice, children, ...rest }: ConfirmActionProps<N>) {
  const [text, setText] = useState("");
  // Invisible characters are typed as they are shown.
  const shown = visible(typed);
  return (
    <ActionDialog
      look="danger"
      {...rest}
      why={visible(text) === shown ? undefined : `Type ${shown} first.`}
      input={() => input}
    >
      {choice}
      <div className="text-sm text-muted">{children}</div>
      <TextField
        name="typed"
        label={`Type ${shown} to confirm`}
        value={text}
        autoComplete="off"
        mono
        onChange={(event) => setText(event.target.value)}
      />
    </ActionDialog>
  );
}

interface SecretOnceProps {
  readonly title: string;
  /** Null if a repeated request returned the answer without its secret. */
  readonly text: string | null;
  readonly note: string | undefined;
}

function SecretOnce({ title, text, note }: SecretOnceProps) {
  const { finish } = useDialog();
  const said = note !== undefined && <p className="text-sm text-muted">{visible(note)}</p>;
  if (text === null && note !== undefined) return <Dialog title={title}>{said}</Dialog>;
  return (
    <Dialog title={title}>
      <div className="flex flex-col gap-4">
        {said}
        <p className="text-sm text-muted">Copy it now: it is stored nowhere and never shown again.</p>
        <Command>{text ?? ""}</Command>
        <div className="flex justify-end">
          <Button look="primary" onClick={finish}>
            I have it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

interface Removal<N extends RouteName, T> {
  readonly row: N;
  readonly title: string;
  readonly verb?: string;
  readonly nameOf: (thing: T) => string;
  readonly input: (thing: T) => CallInput<N>;
  /** What happens, above the field for the name. */
  readonly warning: ReactNode;
}

/** How one of several things is removed: its dialog, the button that opens it, and the column of these buttons. */
export function createRemoval<N extends RouteName, T>({ row, title, verb = "Remove", ...of }: Removal<N, T>) {
  const dialog = (thing: T, choice?: ReactNode) => (
    <ConfirmAction
      row={row}
      title={title}
      submit={verb}
      typed={of.nameOf(thing)}
      input={of.input(thing)}
      choice={choice}
    >
      {of.warning}
    </ConfirmAction>
  );
  const button = (thing: T) => (
    <DialogIconButton row={row} label={`${verb} ${of.nameOf(thing)}`} dialog={dialog(thing)}>
      <Trash2 size={14} />
    </DialogIconButton>
  );
  const column: Column<T> = { head: "", end: true, cell: button };
  return { dialog, button, column };
}
