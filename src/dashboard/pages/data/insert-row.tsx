import { useState } from "react";
import { visible } from "../../data/format.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { Field, Input, Select, TextArea } from "../../ui/field.tsx";
import type { TablePageRows } from "./table-rows.ts";

type Column = TablePageRows["columns"][number];
/** The values by column name. A column without one gets its default. */
type Given = Readonly<
  Record<string, { readonly kind: "text"; readonly text: string } | { readonly kind: "null" } | undefined>
>;

interface InsertProps {
  readonly slug: string;
  readonly page: TablePageRows;
  readonly onClose: () => void;
}

/** A form for a new row, with a field for each column by its type. */
export function InsertRow({ slug, page, onClose }: InsertProps) {
  const [given, setGiven] = useState<Given>({});
  const columns = page.columns.filter(({ generated, identity }) => generated === null && identity !== "always");
  const input = () => {
    const values = Object.fromEntries(
      columns.flatMap((column) => {
        const value = given[column.name];
        return value === undefined ? [] : [[column.name, value.kind === "null" ? null : valueOf(column, value.text)]];
      }),
    );
    return { params: { slug, schema: page.schema, table: page.name }, body: { values } };
  };
  return (
    <ActionDialog
      row="data.insert"
      title={`Insert into ${page.name}`}
      submit="Insert"
      shape="sheet"
      input={input}
      onClose={onClose}
    >
      {columns.map((column) => (
        <ColumnField
          key={column.name}
          column={column}
          value={given[column.name]}
          onChange={(value) => setGiven((before) => ({ ...before, [column.name]: value }))}
        />
      ))}
    </ActionDialog>
  );
}

interface ColumnFieldProps {
  readonly column: Column;
  readonly value: Given[string] | undefined;
  readonly onChange: (value: Given[string] | undefined) => void;
}

function ColumnField({ column, value, onChange }: ColumnFieldProps) {
  const { type } = column;
  const text = value?.kind === "text" ? value.text : "";
  const change = (next: string) =>
    onChange(next === "" && !/text|char/.test(type) ? undefined : { kind: "text", text: next });
  const left =
    column.default === null ? (column.nullable ? "left out: null" : "required") : `left out: ${column.default}`;
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

// Numbers stay text, so that they keep all digits until PostgreSQL reads them.
function valueOf({ type }: Column, text: string): unknown {
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
