import { X } from "lucide-react";
import { useEffect, useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Button, IconButton } from "./button.tsx";
import { Field, Input } from "./field.tsx";
import { Problem } from "./problem.tsx";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  /** A sheet stands at the right edge and has the page's height. */
  readonly shape?: "dialog" | "sheet" | "wide";
}

const shapes = {
  dialog: "m-auto w-[min(32rem,calc(100vw-2rem))] max-h-[calc(100dvh-4rem)] rounded-lg border",
  wide: "m-auto w-[min(52rem,calc(100vw-2rem))] max-h-[calc(100dvh-4rem)] rounded-lg border",
  sheet: "my-0 mr-0 ml-auto h-dvh max-h-dvh w-[min(30rem,100vw)] border-l",
};

/** The browser's own dialog: it traps focus, closes on Escape, makes the page behind inert and gives focus back. */
export function Dialog({ title, onClose, children, shape = "dialog" }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    return () => (before instanceof HTMLElement ? before.focus() : undefined);
  }, []);
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === ref.current && onClose()}
      className={`${shapes[shape]} border-line bg-raised p-0 shadow-float`}
    >
      <div className="flex max-h-[inherit] flex-col">
        <header className="flex items-center justify-between gap-4 border-b border-line py-2.5 pr-2.5 pl-5">
          <h2 id={id} className="text-lg font-semibold">
            {title}
          </h2>
          <IconButton label="Close" onClick={onClose}>
            <X size={16} />
          </IconButton>
        </header>
        <div className="min-h-0 overflow-y-auto p-5">{children}</div>
      </div>
    </dialog>
  );
}

interface FormDialogProps {
  readonly title: string;
  readonly submit: string;
  readonly look?: "primary" | "danger";
  readonly busy: boolean;
  readonly error: Error | null;
  readonly why?: string | undefined;
  readonly shape?: DialogProps["shape"];
  readonly onSubmit: (form: FormData) => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A dialog that sends something: its fields, what went wrong, one button. */
export function FormDialog({
  title,
  submit,
  look = "primary",
  busy,
  error,
  why,
  shape = "dialog",
  ...rest
}: FormDialogProps) {
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (!busy && why === undefined) rest.onSubmit(new FormData(event.currentTarget));
  };
  return (
    <Dialog title={title} onClose={rest.onClose} shape={shape}>
      <form onSubmit={send} className="flex flex-col gap-4">
        {rest.children}
        {error !== null && <Problem error={error} />}
        <div className="mt-1 flex justify-end gap-2">
          <Button onClick={rest.onClose}>Cancel</Button>
          <Button type="submit" look={look} busy={busy} why={why}>
            {submit}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface ConfirmProps extends Omit<FormDialogProps, "onSubmit"> {
  /** What has to be typed before the button works. */
  readonly typed: string;
  readonly onConfirm: () => void;
}

/** For what cannot be undone: the name is typed first. */
export function ConfirmDialog({ typed, onConfirm, children, ...rest }: ConfirmProps) {
  const [text, setText] = useState("");
  return (
    <FormDialog look="danger" {...rest} why={text === typed ? rest.why : `Type ${typed} first.`} onSubmit={onConfirm}>
      {children}
      <Field label={`Type ${typed} to confirm`}>
        {(field) => (
          <Input {...field} value={text} autoComplete="off" mono onChange={(event) => setText(event.target.value)} />
        )}
      </Field>
    </FormDialog>
  );
}
