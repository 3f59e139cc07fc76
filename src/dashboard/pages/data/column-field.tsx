import { visible } from "../../data/format.ts";
import { Field, Input, Select, TextArea } from "../../ui/field.tsx";
import type { TablePageRows } from "./table-rows.ts";

type Column = TablePageRows["columns"][number];
/** What the user gives for a column. */
export type Given = { readonly kind: "text"; readonly text: string } | { readonly kind: "null" };

interface ColumnFieldProps {
  readonly column: Column;
  readonly value: Given | undefined;
  /** What happens without a value. */
  readonly left: string;
  readonly onChange: (value: Given | undefined) => void;
}

/** A field for a value of a column, by its type. */
export function ColumnField({ column, value, left, onChange }: ColumnFieldProps) {
  const { type } = column;
  const text = value?.kind === "text" ? value.text : "";
  const change = (next: string) =>
    onChange(next === "" && !/text|char/.test(type) ? undefined : { kind: "text", text: next });
  return (
    <Field
      label={visible(column.name)}
      hint={visible(`${type} · ${value === undefined ? left : value.kind === "null" ? "null" : "given"}`)}
      name={`values.${column.name}`}
    >
      {(ids) => (
        <span className="flex gap-2">
          {type === "boolean" ? (
            <Select {...ids} value={text} onChange={(event) => change(event.target.value)}>
              <option value="">–</option>
              <option value="true">true</option>
              <option value="false">false</option>
            </Select>
          ) : /json|text/.test(type) ? (
            <TextArea {...ids} rows={2} value={text} onChange={(event) => change(event.target.value)} />
          ) : (
            <Input {...ids} mono value={text} onChange={(event) => change(event.target.value)} />
          )}
          {column.nullable && (
            <label className="flex shrink-0 items-center gap-1.5 text-xs text-muted">
              <input
                type="checkbox"
                className="accent-[var(--accent)]"
                checked={value?.kind === "null"}
                onChange={(event) => onChange(event.target.checked ? { kind: "null" } : undefined)}
              />
              null
            </label>
          )}
        </span>
      )}
    </Field>
  );
}

/** Returns the value to send. Numbers stay text, so that they keep all digits until PostgreSQL reads them. */
export function valueOf({ type }: Column, text: string): unknown {
  if (type === "boolean") return text === "true";
  if (/^jsonb?$/.test(type)) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text;
    }
  }
  return text;
}
