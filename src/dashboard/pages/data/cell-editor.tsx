import { useEffect, useRef, useState, type KeyboardEvent } from "react";
import { useAction } from "../../data/api.ts";
import { Form } from "../../ui/form.tsx";
import { ColumnField, valueOf, type Given } from "./column-field.tsx";
import { keyOf } from "./row-key.ts";
import type { Row, TablePageRows } from "./table-rows.ts";

/** Which cell of a page of rows. */
export interface CellPlace {
  readonly page: TablePageRows;
  readonly index: number;
  readonly column: TablePageRows["columns"][number];
}

interface CellEditorProps {
  readonly slug: string;
  readonly cell: CellPlace;
  readonly onClose: () => void;
}

/** Changes one cell, if its row is still as it was when the editor opened. Enter saves, Shift Enter is a new line, Escape leaves. */
export function CellEditor({ slug, cell, onClose }: CellEditorProps) {
  // The page behind may be read anew meanwhile.
  const [{ page, index, column }] = useState(cell);
  const row = page.rows[index] as Row;
  const [given, setGiven] = useState<Given | undefined>(() => givenOf(row[column.name]));
  const save = useAction("data.update");
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => ref.current?.querySelector<HTMLElement>("textarea, input, select")?.focus(), []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
    else if (event.key !== "Enter" || event.shiftKey || !(event.target instanceof HTMLTextAreaElement)) return;
    else event.target.form?.requestSubmit();
    event.preventDefault();
    event.stopPropagation();
  };
  const send = () => {
    const value = given?.kind === "text" ? valueOf(column, given.text) : null;
    const version = page.versions[index] ?? undefined;
    const change = { key: keyOf(page, row) ?? {}, values: { [column.name]: value } };
    const params = { slug, schema: page.schema, table: page.name };
    return save.mutateAsync({ params, body: { ...change, ...(version !== undefined && { version }) } }).then(onClose);
  };
  return (
    <div ref={ref} onKeyDown={onKeyDown} className="flex flex-col gap-3">
      <Form
        submit="Save"
        why={given === undefined ? "Give a value first." : undefined}
        onSubmit={send}
        onCancel={onClose}
      >
        <ColumnField column={column} value={given} left="a value is needed" onChange={setGiven} />
      </Form>
    </div>
  );
}

function givenOf(value: unknown): Given {
  if (value === null || value === undefined) return { kind: "null" };
  return { kind: "text", text: typeof value === "string" ? value : JSON.stringify(value, null, 2) };
}

/** Returns whether this cell can be changed, by those who may: its row has a key, and its value is whole and its own. */
export function isEditable({ page, index, column }: CellPlace): boolean {
  const isCut = page.cut.some((cut) => cut.row === index && cut.columns.includes(column.name));
  const isOwn = column.generated === null && column.identity !== "always";
  return isOwn && !isCut && keyOf(page, page.rows[index] as Row) !== undefined;
}
