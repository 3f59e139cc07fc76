import { useState, type ReactNode } from "react";
import type { Answer, CallInput } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { useAction, useWhyNot } from "../data/api.ts";
import { visible } from "../data/format.ts";
import { Button, RemoveButton, Command } from "./button.tsx";
import { Dialog, type DialogProps } from "./dialog.tsx";
import { TextField } from "./field.tsx";
import { Form, type FormProps } from "./form.tsx";
import type { Column } from "./table.tsx";

type FormDialogProps = FormProps & Pick<DialogProps, "title" | "shape"> & { readonly onClose: () => void };

interface ActionDialogProps<N extends RouteName> extends Omit<FormDialogProps, "busy" | "onSubmit" | "onCancel"> {
  /** The name of the route to call. */
  readonly row: N;
  readonly input: (form: FormData) => CallInput<N>;
  /** Called on success, instead of closing the dialog. */
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
  if (secret !== undefined && action.data !== undefined)
    return (
      <SecretOnce
        title={secret.title}
        text={secret.of(action.data)}
        note={secret.note?.(action.data)}
        onClose={rest.onClose}
      />
    );
  const onSuccess = onDone ?? (secret === undefined ? rest.onClose : undefined);
  return (
    <FormDialog {...rest} why={refused ?? why} onSubmit={(form) => action.mutateAsync(input(form)).then(onSuccess)} />
  );
}

export function FormDialog({ title, shape = "dialog", onClose, ...form }: FormDialogProps) {
  return (
    <Dialog title={title} shape={shape} onClose={onClose}>
      <Form {...form} onCancel={onClose} />
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
  readonly onClose: () => void;
  readonly onDone?: () => void;
  readonly children: ReactNode;
}

/** A dialog for what can't be undone: the user types the name first. */
export function ConfirmAction<N extends RouteName>({ typed, input, children, ...rest }: ConfirmActionProps<N>) {
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
  readonly onClose: () => void;
}

function SecretOnce({ title, text, note, onClose }: SecretOnceProps) {
  const said = note !== undefined && <p className="text-sm text-muted">{visible(note)}</p>;
  if (text === null && note !== undefined)
    return (
      <Dialog title={title} onClose={onClose}>
        {said}
      </Dialog>
    );
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="flex flex-col gap-4">
        {said}
        <p className="text-sm text-muted">Copy it now: it is stored nowhere and never shown again.</p>
        <Command>{text ?? ""}</Command>
        <div className="flex justify-end">
          <Button look="primary" onClick={onClose}>
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

/** How the things of a list are removed: the button of each, a column of these buttons, and the dialog that one opens. */
export function useRemoval<N extends RouteName, T>({ row, title, verb = "Remove", ...of }: Removal<N, T>) {
  const [chosen, setChosen] = useState<T>();
  const button = (thing: T) => (
    <RemoveButton row={row} label={`${verb} ${of.nameOf(thing)}`} onClick={() => setChosen(thing)} />
  );
  const column: Column<T> = { head: "", end: true, cell: button };
  const dialog = chosen !== undefined && (
    <ConfirmAction
      row={row}
      title={title}
      submit={verb}
      typed={of.nameOf(chosen)}
      input={of.input(chosen)}
      onClose={() => setChosen(undefined)}
    >
      {of.warning}
    </ConfirmAction>
  );
  return { button, column, dialog };
}
