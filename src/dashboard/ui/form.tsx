import { useCallback, useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import { ApiError } from "../../contract/client.ts";
import { useOneCall } from "../data/use-one-call.ts";
import { Button } from "./button.tsx";
import { ProblemsContext } from "./field.tsx";
import { Problem } from "./page.tsx";

export interface FormProps {
  readonly submit: string;
  readonly look?: "primary" | "danger" | "plain";
  /** Whether something else than this form keeps it from being sent. */
  readonly busy?: boolean;
  /** Why the form can't be sent. */
  readonly why?: string | undefined;
  /** Sends the form, which is busy until the promise settles, and shows why it was rejected. */
  readonly onSubmit: (form: FormData) => Promise<unknown>;
  readonly onCancel?: (() => void) | undefined;
  /** The text beside the button after success. */
  readonly done?: string | undefined;
  readonly className?: string;
  /** Puts the button beside the only field. */
  readonly inline?: boolean;
  readonly children: ReactNode;
}

/**
 * The form that all of the dashboard uses. A field's error appears below it, whether the browser or the API found it, and the first such
 * field gets the focus; other errors appear above the button. A form that is being sent is not sent a second time.
 */
export function Form({
  submit,
  look = "primary",
  busy = false,
  why,
  className = "",
  inline = false,
  onSubmit,
  ...rest
}: FormProps) {
  const { isBusy, error, run } = useOneCall();
  const { ref, problemOf, isPlaced, onInvalid, onInput } = useProblems(error);
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    if (!busy && why === undefined) void run(() => onSubmit(form));
  };
  return (
    <ProblemsContext value={problemOf}>
      <form
        ref={ref}
        onSubmit={send}
        onInvalidCapture={onInvalid}
        onInput={onInput}
        className={inline ? "flex flex-wrap items-start gap-2" : "flex flex-col gap-4"}
      >
        <div className={inline ? "min-w-0 flex-1" : className === "" ? "contents" : className}>{rest.children}</div>
        {error !== null && !isPlaced && (
          <div className={inline ? "order-last w-full" : ""}>
            <Problem error={error} />
          </div>
        )}
        <div
          className={`flex items-center gap-2 ${rest.onCancel === undefined ? (inline ? "mt-6" : "mt-1") : dialogFooter}`}
        >
          {rest.onCancel !== undefined && <Button onClick={rest.onCancel}>Cancel</Button>}
          <Button type="submit" look={look} busy={busy || isBusy} why={why}>
            {submit}
          </Button>
          <span role="status" className="text-sm text-ok empty:hidden">
            {rest.done}
          </span>
        </div>
      </form>
    </ProblemsContext>
  );
}

// In a dialog the buttons stay in sight while the fields scroll. The negative margins undo the padding of the dialog.
const dialogFooter = "sticky bottom-0 z-[1] -mx-5 -mb-5 mt-1 justify-end border-t border-line bg-raised px-5 py-3";

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

function useProblems(error: Error | null) {
  const ref = useRef<HTMLFormElement>(null);
  const [invalid, setInvalid] = useState<Readonly<Record<string, string>>>({});
  const [attempt, setAttempt] = useState(0);
  const [isPlaced, setPlaced] = useState(false);
  const problemOf = useCallback((name: string) => invalid[name] ?? refusalOf(error, name), [invalid, error]);
  useEffect(() => {
    const names = Array.from(ref.current?.elements ?? [], (element) => element.getAttribute("name") ?? "");
    const details = error instanceof ApiError ? error.details : [];
    setPlaced(details.length > 0 && details.every(({ path }) => names.some((name) => isOf(path, name))));
  }, [error]);
  // Only once for each refusal: while the user corrects a field, the focus must not jump to the next one.
  useEffect(() => {
    if (error !== null || attempt > 0) ref.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus();
  }, [error, attempt]);
  const onInvalid = (event: FormEvent) => {
    const control = event.target as Control;
    if (control.name === "") return;
    // The field shows the error, not the browser's bubble.
    event.preventDefault();
    setAttempt((before) => before + 1);
    setInvalid((before) => ({ ...before, [control.name]: sentenceFor(control) }));
  };
  const onInput = (event: FormEvent) => {
    const { name } = event.target as Control;
    if (!(name in invalid)) return;
    const { [name]: _, ...others } = invalid;
    setInvalid(others);
  };
  return { ref, problemOf, isPlaced, onInvalid, onInput };
}

function refusalOf(error: Error | null, name: string): string | undefined {
  return error instanceof ApiError ? error.details.find(({ path }) => isOf(path, name))?.message : undefined;
}

function isOf(path: string, name: string): boolean {
  return name !== "" && (path === name || path.startsWith(`${name}.`));
}

function sentenceFor({ validity, validationMessage }: Control): string {
  return validity.valueMissing ? "This field is required." : validationMessage;
}
