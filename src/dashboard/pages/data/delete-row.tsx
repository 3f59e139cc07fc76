import { useAction } from "../../data/api.ts";
import { useWhyNot } from "../../data/me.ts";
import { ConfirmDialog } from "../../ui/dialog.tsx";
import type { Row } from "./grid.tsx";
import { keyOf, keyText } from "./row-key.ts";
import type { TablePageRows } from "./table-page.tsx";

interface DeleteProps {
  readonly slug: string;
  readonly page: TablePageRows;
  readonly row: Row;
  readonly onClose: () => void;
}

export function DeleteRow({ slug, page, row, onClose }: DeleteProps) {
  const remove = useAction("data.delete");
  const why = useWhyNot("data.delete");
  const key = keyOf(page, row) ?? {};
  const confirm = () =>
    remove.mutate({ params: { slug, schema: page.schema, table: page.name }, body: { key } }, { onSuccess: onClose });
  return (
    <ConfirmDialog
      title="Delete a row"
      submit="Delete"
      typed={keyText(key)}
      why={why}
      busy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={confirm}
    >
      <p className="text-sm text-muted">
        The one row of <code>{page.name}</code> with {Object.keys(key).join(", ")} = <code>{keyText(key)}</code>. Only a
        backup has it afterwards.
      </p>
    </ConfirmDialog>
  );
}
