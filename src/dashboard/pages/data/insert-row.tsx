import { useState } from "react";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { ColumnField, valueOf, type Given } from "./column-field.tsx";
import type { TablePageRows } from "./table-rows.ts";

type Column = TablePageRows["columns"][number];

interface InsertProps {
  readonly slug: string;
  readonly page: TablePageRows;
  readonly onClose: () => void;
}

/** A form for a new row, with a field for each column by its type. */
export function InsertRow({ slug, page, onClose }: InsertProps) {
  // A column without a value gets its default.
  const [given, setGiven] = useState<Readonly<Record<string, Given | undefined>>>({});
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
          left={withoutValue(column)}
          onChange={(value) => setGiven((before) => ({ ...before, [column.name]: value }))}
        />
      ))}
    </ActionDialog>
  );
}

function withoutValue({ default: standard, nullable }: Column): string {
  return standard === null ? (nullable ? "left out: null" : "required") : `left out: ${standard}`;
}
