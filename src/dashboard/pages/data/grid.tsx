import { ArrowDown, ArrowUp, KeyRound, Trash2 } from "lucide-react";
import { useRef, useState, type ReactNode } from "react";
import { visible } from "../../data/format.ts";
import { DialogIconButton } from "../../ui/button.tsx";
import { useWhyNot } from "../../data/api.ts";
import { moveInRows } from "../../data/move-in-rows.ts";
import { useOpenDialog } from "../../ui/dialogs.tsx";
import { CellDialog } from "./cell-dialog.tsx";
import { CellEditor, isEditable, type CellPlace } from "./cell-editor.tsx";
import { DeleteRow } from "./insert-row.tsx";
import { keyOf } from "./row-key.ts";
import type { Row, TablePageRows, TableSearch } from "./table-rows.ts";
import { isLong, isNumber, Value } from "./value.tsx";

interface GridProps {
  readonly slug: string;
  readonly page: TablePageRows;
  readonly search: TableSearch;
  readonly onSearch: (search: TableSearch) => void;
}

/** A table's rows below a header that stays visible. Arrow keys move between cells; Enter edits one in place, or shows it in a dialog. */
export function Grid({ slug, page, search, onSearch }: GridProps) {
  const sortBy = (name: string) => {
    const isDown = search.sort === name && search.dir === undefined;
    onSearch({ ...(search.q === undefined ? {} : { q: search.q }), sort: name, ...(isDown ? { dir: "desc" } : {}) });
  };
  const key = page.columns.find((column) => column.primary_key)?.name;
  const mayChange = useWhyNot("data.update") === undefined;
  const [edited, setEdited] = useState<CellPlace>();
  const openDialog = useOpenDialog();
  const opener = useRef<HTMLElement>(null);
  const open = (cell: CellPlace, from: HTMLElement) => {
    const { name, type } = cell.column;
    const value = (page.rows[cell.index] as Row)[name];
    opener.current = from;
    const can = isEditable(cell);
    if (mayChange && can && fitsInPlace(value)) return setEdited(cell);
    const isCut = page.cut.some((cut) => cut.row === cell.index && cut.columns.includes(name));
    return openDialog(<CellDialog cell={{ name, type, value, isCut, editable: can ? { slug, cell } : undefined }} />);
  };
  const leave = () => {
    setEdited(undefined);
    opener.current?.focus();
  };
  return (
    // No `overflow: hidden` at the round corners: the browser would mask all rows for every frame of scrolling.
    <div className="rounded-md border border-line bg-linear-to-b from-panel from-50% to-bg to-50% py-[3px]">
      <div
        tabIndex={-1}
        className="max-h-[calc(100dvh-10rem-var(--header))] max-sm:max-h-[calc(100dvh-17rem)] min-h-48 overflow-auto bg-bg"
        onKeyDown={moveInRows}
      >
        <table className="min-w-full border-separate border-spacing-0 text-sm">
          <caption className="sr-only">Rows of {visible(page.name)}</caption>
          <Head page={page} search={search} stuck={key} onSort={sortBy} />
          <tbody>
            {page.rows.map((raw, index) => {
              const row = raw as Row;
              return (
                <tr key={index} className="group">
                  <RowHead
                    number={(search.offset ?? 0) + index + 1}
                    deletion={
                      keyOf(page, row) === undefined ? undefined : <DeleteRow slug={slug} page={page} row={row} />
                    }
                  />
                  {page.columns.map(({ name, type }, place) => (
                    <td
                      key={name}
                      className={`relative h-9 max-w-96 border-r border-b border-line p-0 group-hover:bg-panel last:border-r-0 max-sm:h-11 ${name === key ? `bg-bg ${stays}` : ""}`}
                    >
                      <button
                        type="button"
                        tabIndex={index === 0 && place === 0 ? 0 : -1}
                        onClick={({ currentTarget }) =>
                          open({ page, index, column: page.columns[place] as Column }, currentTarget)
                        }
                        className={`block h-full w-full px-3 ${isLong(row[name]) ? "truncate" : "whitespace-nowrap"} text-left font-mono text-[12.5px] focus-visible:outline-offset-[-2px] ${isNumber.test(type) ? "text-right" : ""}`}
                      >
                        <Value value={row[name]} />
                      </button>
                      {edited?.index === index && edited.column.name === name && (
                        <div
                          role="group"
                          aria-label={`Change ${visible(name)}`}
                          className="absolute top-0 left-0 z-10 w-80 overflow-hidden rounded-md border border-accent bg-raised whitespace-normal shadow-float max-sm:fixed max-sm:inset-x-2 max-sm:top-auto max-sm:bottom-2 max-sm:w-auto"
                        >
                          <div className="p-5">
                            <CellEditor slug={slug} cell={edited} onClose={leave} />
                          </div>
                        </div>
                      )}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
        {page.rows.length === 0 && (
          <p className="px-4 py-8 text-center text-sm text-muted">
            {search.q === undefined ? "This table has no rows." : "No row holds this text."}
          </p>
        )}
      </div>
    </div>
  );
}

interface HeadProps extends Pick<GridProps, "page" | "search"> {
  /** The column that stays in sight on a phone. */
  readonly stuck: string | undefined;
  readonly onSort: (column: string) => void;
}

function Head({ page, search, stuck, onSort }: HeadProps) {
  return (
    <thead className="sticky top-0 z-[2]">
      <tr>
        <th scope="col" className="w-12 border-r border-b border-line bg-panel">
          <span className="sr-only">Row</span>
        </th>
        {page.columns.map((column) => (
          <th
            key={column.name}
            scope="col"
            aria-sort={search.sort === column.name ? (search.dir === "desc" ? "descending" : "ascending") : "none"}
            className={`border-r border-b border-line bg-panel p-0 text-left font-medium last:border-r-0 ${column.name === stuck ? stays : ""}`}
          >
            <button
              type="button"
              onClick={() => onSort(column.name)}
              className={`flex w-full flex-col px-3 py-1.5 leading-4 hover:bg-hover focus-visible:outline-offset-[-2px] ${isNumber.test(column.type) ? "items-end" : "items-start"}`}
            >
              <span className="flex items-center gap-1 whitespace-nowrap">
                {column.primary_key && <KeyRound aria-label="Primary key" size={11} className="text-accent" />}
                {visible(column.name)}
                {search.sort === column.name &&
                  (search.dir === "desc" ? <ArrowDown aria-hidden size={12} /> : <ArrowUp aria-hidden size={12} />)}
              </span>
              <span className="text-xs font-normal whitespace-nowrap text-faint">
                {visible(column.type)}
                {!column.nullable && <span className="max-sm:hidden"> · not null</span>}
              </span>
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

type Column = TablePageRows["columns"][number];

// On a phone the key stays at the left, so that the reader knows whose values scroll by. Its editor is above the keys below it.
const stays = "max-sm:sticky max-sm:left-0 max-sm:z-[1] max-sm:max-w-36 max-sm:has-[[role=group]]:z-10";

/** Objects and long or many-lined texts open in a dialog, where they are read first. */
function fitsInPlace(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return false;
  return typeof value !== "string" || (value.length <= 200 && !value.includes("\n"));
}

interface RowHeadProps {
  readonly number: number;
  /** The dialog that deletes it; undefined where no key names the row. */
  readonly deletion: ReactNode;
}

/** The row's number. Under the pointer, with the focus and on a touch screen it is the button that deletes the row. */
function RowHead({ number, deletion }: RowHeadProps) {
  const hides = "group-hover:opacity-0 peer-focus-visible:opacity-0 pointer-coarse:opacity-0";
  return (
    <td className="relative h-9 w-12 min-w-12 max-sm:h-11 border-r border-b border-line p-0 text-center group-hover:bg-panel">
      {deletion !== undefined && (
        <DialogIconButton
          row="data.delete"
          label={`Delete row ${number}`}
          className="peer absolute inset-0 m-auto opacity-0 group-hover:opacity-100 focus-visible:opacity-100 pointer-coarse:opacity-100"
          dialog={deletion}
        >
          <Trash2 size={14} />
        </DialogIconButton>
      )}
      <span
        aria-hidden
        className={`pointer-events-none px-2 text-xs text-faint ${deletion === undefined ? "" : hides}`}
      >
        {number}
      </span>
    </td>
  );
}
