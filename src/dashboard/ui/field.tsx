import { createContext, use, useId, type ComponentProps, type ReactNode } from "react";

interface FieldIds {
  readonly id: string;
  readonly name?: string;
  readonly "aria-describedby"?: string;
  readonly "aria-invalid"?: true;
}

interface FieldProps {
  readonly label: string;
  /** The field's name in the contract: an error of the API that names it appears below the control. */
  readonly name?: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly children: (ids: FieldIds) => ReactNode;
}

/** A control with its label, and its error below. */
export function Field({ label, name, hint, error: given, children }: FieldProps) {
  const id = useId();
  const problemOf = use(ProblemsContext);
  const error = given ?? (name === undefined ? undefined : problemOf(name));
  const note = error ?? hint;
  const ids: FieldIds = {
    id,
    ...(name === undefined ? {} : { name }),
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

/** Returns the error of the form's field with this name. */
export const ProblemsContext = createContext<(name: string) => string | undefined>(() => undefined);

const box =
  "w-full min-w-0 rounded-md border border-strong/60 bg-bg px-2.5 text-sm text-text placeholder:text-faint hover:border-strong focus-visible:border-accent focus-visible:outline-offset-0 aria-invalid:border-bad disabled:opacity-60 max-sm:text-base";

export function Input({
  mono = false,
  className = "",
  ...rest
}: ComponentProps<"input"> & { readonly mono?: boolean }) {
  return <input {...rest} className={`target h-8 ${box} ${mono ? "font-mono" : ""} ${className}`} />;
}

type TextFieldProps = Pick<FieldProps, "label" | "hint" | "error"> &
  ComponentProps<typeof Input> & { readonly name: string };

export function TextField({ label, hint, error, name, ...rest }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} error={error} name={name}>
      {(field) => <Input {...rest} {...field} />}
    </Field>
  );
}

/** A number input with its label, no wider than numbers need. */
export function NumberField(props: TextFieldProps) {
  return <TextField type="number" required className="max-w-32" {...props} />;
}

export function TextArea({ className = "", ...rest }: ComponentProps<"textarea">) {
  return <textarea spellCheck={false} {...rest} className={`${box} py-2 font-mono ${className}`} />;
}

export function Select({ className = "", ...rest }: ComponentProps<"select">) {
  return <select {...rest} className={`arrowed target h-8 ${box} pr-8 ${className}`} />;
}

interface SelectFieldProps extends ComponentProps<"select">, Pick<FieldProps, "label" | "hint"> {
  readonly name: string;
  readonly options: readonly (readonly [value: string, words: string])[];
}

export function SelectField({ label, hint, name, options, ...rest }: SelectFieldProps) {
  return (
    <Field label={label} hint={hint} name={name}>
      {(field) => (
        <Select {...rest} {...field}>
          {options.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

export function Checkbox({ label, ...rest }: ComponentProps<"input"> & { readonly label: ReactNode }) {
  return (
    <label className="target inline-flex items-center gap-2 text-sm">
      <input type="checkbox" {...rest} className="size-4 shrink-0 accent-[var(--accent)]" />
      {label}
    </label>
  );
}

/** Returns the text of a form's field; empty if there is no such field. */
export function textOf(form: FormData, name: string): string {
  const value = form.get(name);
  return typeof value === "string" ? value : "";
}
