import { useState } from "react";
import { visible } from "../../data/format.ts";
import { ActionDialog, ConfirmAction } from "../../ui/action-dialog.tsx";
import { ColumnField, valueOf, type Given } from "./column-field.tsx";
import { keyOf, keyText } from "./row-key.ts";
import type { Row, TablePageRows } from "./table-rows.ts";

type Column = TablePageRows["columns"][number];

interface InsertProps {
  readonly slug: string;
  readonly page: TablePageRows;
}

/** A form for a new row, with a field for each column by its type. */
export function InsertRow({ slug, page }: InsertProps) {
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
    <ActionDialog row="data.insert" title={`Insert into ${page.name}`} submit="Insert" shape="sheet" input={input}>
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

interface DeleteProps {
  readonly slug: string;
  readonly page: TablePageRows;
  readonly row: Row;
}

export function DeleteRow({ slug, page, row }: DeleteProps) {
  const key = keyOf(page, row) ?? {};
  return (
    <ConfirmAction
      row="data.delete"
      title="Delete a row"
      submit="Delete"
      typed={keyText(key)}
      input={{ params: { slug, schema: page.schema, table: page.name }, body: { key } }}
    >
      The one row of <code>{visible(page.name)}</code> with {visible(Object.keys(key).join(", "))} ={" "}
      <code>{visible(keyText(key))}</code>. Only a backup has it afterwards.
    </ConfirmAction>
  );
}
