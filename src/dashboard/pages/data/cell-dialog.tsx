import { Pencil } from "lucide-react";
import { useState } from "react";
import { visible } from "../../data/format.ts";
import { CopyButton, Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { useDialog } from "../../ui/dialogs.tsx";
import { CellEditor, type CellPlace } from "./cell-editor.tsx";

export interface Cell {
  readonly name: string;
  readonly type: string;
  readonly value: unknown;
  readonly isCut: boolean;
  /** Where it can be changed; a result of a query has no place. */
  readonly editable?: { readonly slug: string; readonly cell: CellPlace } | undefined;
}

/** Shows a cell's value, at most its first 4 KiB. */
export function CellDialog({ cell }: { readonly cell: Cell }) {
  const { value, editable } = cell;
  const { close } = useDialog();
  const [isEdited, setEdited] = useState(false);
  if (isEdited && editable !== undefined)
    return (
      <Dialog title={cell.name} shape="wide">
        <CellEditor {...editable} onClose={close} />
      </Dialog>
    );
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <Dialog title={cell.name} shape="wide">
      <div className="mb-2 flex items-center justify-between text-sm text-faint">
        <span>
          {visible(cell.type)}
          {cell.isCut && " · only the first 4 KiB are shown"}
        </span>
        <CopyButton text={text} label="Copy the value" />
      </div>
      <pre
        tabIndex={0}
        className="max-h-[60vh] overflow-auto rounded-md border border-line bg-panel p-3 text-[12.5px] leading-5 break-words whitespace-pre-wrap"
      >
        {value === null ? <i className="text-faint">null</i> : visible(text)}
      </pre>
      {editable !== undefined && (
        <div className="mt-3 flex justify-end">
          <Button icon={<Pencil size={14} />} row="data.update" onClick={() => setEdited(true)}>
            Change
          </Button>
        </div>
      )}
    </Dialog>
  );
}
