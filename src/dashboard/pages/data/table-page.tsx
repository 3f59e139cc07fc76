import { getRouteApi } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight, Plus } from "lucide-react";
import { useState } from "react";
import { useCall } from "../../data/api.ts";
import { count, visible } from "../../data/format.ts";
import { ConfirmAction, ActionDialog } from "../../ui/action-dialog.tsx";
import { Button, IconButton } from "../../ui/button.tsx";
import { Input } from "../../ui/field.tsx";
import { Page, View, Problem } from "../../ui/page.tsx";
import { CellDialog, type Cell } from "./cell-dialog.tsx";
import { Grid } from "./grid.tsx";
import { keyOf, keyText } from "./row-key.ts";
import type { Row, TablePageRows, TableSearch } from "./table-rows.ts";
import { ColumnField, valueOf, type Given } from "./column-field.tsx";

const route = getRouteApi("/projects/$slug/database/$schema/$table");
const limit = 100;

/** The page of a table's rows: sorted, searched, a page at a time. The address holds all of that state. */
export function TablePage() {
  const { slug, schema, table } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const set = (next: TableSearch) => void navigate({ search: next });
  const data = useCall("data.rows", { params: { slug, schema, table }, query: { ...search, limit } }, { keep: true });
  const [inserting, setInserting] = useState(false);
  const [cell, setCell] = useState<Cell>();
  const [deleting, setDeleting] = useState<Row>();
  // Until the next page is there, the one before it is shown, whose own next page is the one that is awaited.
  const isAwaited = data.isPlaceholderData;
  const { offset = 0 } = search;
  return (
    <Page
      wide
      title={schema === "public" ? table : `${schema}.${table}`}
      actions={
        <>
          <div className="w-52">
            <Input
              type="search"
              aria-label="Search the rows"
              placeholder="Search text"
              data-search
              defaultValue={search.q ?? ""}
              onKeyDown={(event) =>
                event.key === "Enter" && set({ ...search, q: event.currentTarget.value, offset: 0 })
              }
            />
          </div>
          <Button look="primary" icon={<Plus size={15} />} row="data.insert" onClick={() => setInserting(true)}>
            Insert a row
          </Button>
        </>
      }
    >
      {data.error !== null && data.data !== undefined && <Problem error={data.error} />}
      <View of={data}>
        {(page) => (
          <>
            <Grid slug={slug} page={page} search={search} onSearch={set} onCell={setCell} onDelete={setDeleting} />
            <div className="flex items-center justify-between gap-3 text-sm text-muted">
              <span role="status">
                {isAwaited
                  ? "Loading"
                  : page.rows.length === 0
                    ? "No rows"
                    : `${count(offset + 1)} – ${count(offset + page.rows.length)}`}
                {!isAwaited && page.total !== null && ` of ${page.estimated ? "about " : ""}${count(page.total)}`}
              </span>
              <span className="flex">
                <IconButton
                  label="Previous page"
                  disabled={isAwaited || offset === 0}
                  onClick={() => set({ ...search, offset: Math.max(0, offset - limit) })}
                >
                  <ChevronLeft size={16} />
                </IconButton>
                <IconButton
                  label="Next page"
                  disabled={isAwaited || page.next_offset === null}
                  onClick={() => set({ ...search, offset: page.next_offset ?? offset })}
                >
                  <ChevronRight size={16} />
                </IconButton>
              </span>
            </div>
            {inserting && <InsertRow slug={slug} page={page} onClose={() => setInserting(false)} />}
            {deleting !== undefined && (
              <DeleteRow slug={slug} page={page} row={deleting} onClose={() => setDeleting(undefined)} />
            )}
          </>
        )}
      </View>
      {cell !== undefined && <CellDialog cell={cell} onClose={() => setCell(undefined)} />}
    </Page>
  );
}

interface DeleteProps {
  readonly slug: string;
  readonly page: TablePageRows;
  readonly row: Row;
  readonly onClose: () => void;
}

function DeleteRow({ slug, page, row, onClose }: DeleteProps) {
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

type Column = TablePageRows["columns"][number];

interface InsertProps {
  readonly slug: string;
  readonly page: TablePageRows;
  readonly onClose: () => void;
}

/** A form for a new row, with a field for each column by its type. */
function InsertRow({ slug, page, onClose }: InsertProps) {
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
