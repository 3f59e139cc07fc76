import { useId, type ComponentProps, type ReactNode } from "react";

interface FieldIds {
  readonly id: string;
  readonly "aria-describedby"?: string;
  readonly "aria-invalid"?: true;
}

interface FieldProps {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly children: (ids: FieldIds) => ReactNode;
}

/** A control with its label; what is wrong with it stands below it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const note = error ?? hint;
  const ids: FieldIds = {
    id,
    ...(note === undefined ? {} : { "aria-describedby": `${id}-note` }),
    ...(error === undefined ? {} : { "aria-invalid": true }),
  };
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children(ids)}
      {note !== undefined && (
        <p id={`${id}-note`} className={`text-xs ${error === undefined ? "text-faint" : "text-bad"}`}>
          {note}
        </p>
      )}
    </div>
  );
}

const box =
  "w-full min-w-0 rounded-md border border-strong/60 bg-bg px-2.5 text-sm text-text placeholder:text-faint hover:border-strong focus-visible:border-accent focus-visible:outline-offset-0 aria-invalid:border-bad disabled:opacity-60 max-sm:text-base";

export function Input({
  mono = false,
  className = "",
  ...rest
}: ComponentProps<"input"> & { readonly mono?: boolean }) {
  return <input {...rest} className={`target h-8 ${box} ${mono ? "font-mono" : ""} ${className}`} />;
}

export function TextArea({ className = "", ...rest }: ComponentProps<"textarea">) {
  return <textarea spellCheck={false} {...rest} className={`${box} py-2 font-mono ${className}`} />;
}

export function Select({ className = "", ...rest }: ComponentProps<"select">) {
  return <select {...rest} className={`arrowed target h-8 ${box} pr-8 ${className}`} />;
}

export function Checkbox({ label, ...rest }: ComponentProps<"input"> & { readonly label: ReactNode }) {
  return (
    <label className="target inline-flex items-center gap-2 text-sm">
      <input type="checkbox" {...rest} className="size-4 accent-[var(--accent)]" />
      {label}
    </label>
  );
}
