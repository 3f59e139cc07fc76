import { visible } from "../../data/format.ts";
import { ConfirmAction } from "../../ui/action-dialog.tsx";
import { keyOf, keyText } from "./row-key.ts";
import type { Row, TablePageRows } from "./table-rows.ts";

interface DeleteProps {
  readonly slug: string;
  readonly page: TablePageRows;
  readonly row: Row;
  readonly onClose: () => void;
}

export function DeleteRow({ slug, page, row, onClose }: DeleteProps) {
  const key = keyOf(page, row) ?? {};
  return (
    <ConfirmAction
      row="data.delete"
      title="Delete a row"
      submit="Delete"
      typed={keyText(key)}
      input={{ params: { slug, schema: page.schema, table: page.name }, body: { key } }}
      onClose={onClose}
    >
      The one row of <code>{visible(page.name)}</code> with {visible(Object.keys(key).join(", "))} ={" "}
      <code>{visible(keyText(key))}</code>. Only a backup has it afterwards.
    </ConfirmAction>
  );
}
