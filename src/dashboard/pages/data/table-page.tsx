import { getRouteApi } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight, Plus } from "lucide-react";
import { useCall } from "../../data/api.ts";
import { count } from "../../data/format.ts";
import { DialogButton, IconButton } from "../../ui/button.tsx";
import { Input } from "../../ui/field.tsx";
import { Page, View, Problem } from "../../ui/page.tsx";
import { InsertRow } from "./insert-row.tsx";
import { Grid } from "./grid.tsx";
import type { TableSearch } from "./table-rows.ts";

const route = getRouteApi("/projects/$slug/database/$schema/$table");
const limit = 100;

/** The page of a table's rows: sorted, searched, a page at a time. The address holds all of that state. */
export function TablePage() {
  const { slug, schema, table } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const set = (next: TableSearch) => void navigate({ search: next });
  const data = useCall("data.rows", { params: { slug, schema, table }, query: { ...search, limit } }, { keep: true });
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
          <DialogButton
            look="primary"
            icon={<Plus size={15} />}
            row="data.insert"
            why={data.data === undefined ? "The table is not loaded yet." : undefined}
            dialog={data.data && <InsertRow slug={slug} page={data.data} />}
          >
            Insert a row
          </DialogButton>
        </>
      }
    >
      {data.error !== null && data.data !== undefined && <Problem error={data.error} />}
      <View of={data}>
        {(page) => (
          <>
            <Grid slug={slug} page={page} search={search} onSearch={set} />
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
          </>
        )}
      </View>
    </Page>
  );
}
