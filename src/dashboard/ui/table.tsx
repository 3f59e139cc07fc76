import { useParams } from "@tanstack/react-router";
import { ArrowUp } from "lucide-react";
import { useEffect, useState, useSyncExternalStore, type ReactNode } from "react";
import { plural } from "../data/format.ts";
import { useIsPhone } from "../data/use-is-phone.ts";
import { Button } from "./button.tsx";
import { moveInRows } from "../data/move-in-rows.ts";
import { Ago } from "./text.tsx";
import { View, type ViewProps } from "./page.tsx";

export interface Column<T> {
  readonly head: string;
  readonly cell: (row: T) => ReactNode;
  /** Aligned to the right, for numbers. */
  readonly end?: boolean;
  readonly grow?: boolean;
  /** Hidden below 640 px. */
  readonly wide?: boolean;
}

export interface TableProps<T> {
  readonly caption: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly keyOf: (row: T) => string;
  /** Shows a row below 640 px, where the table becomes a list. Left out: phones show the table without its wide columns. */
  readonly phone?: (row: T) => ReactNode;
  /** The newest row comes first: newer ones wait behind a button while the reader is further down. */
  readonly grows?: boolean;
}

const rowsAtOnce = 100;

/**
 * A table with dense rows of 36 px, on phones a list or fewer columns. It shows a hundred rows, and a hundred more on demand. Arrow keys
 * move the focus between rows. Pages handle empty lists themselves, so a table without rows means that the filter matches nothing.
 */
export function Table<T>({ rows: all, grows = false, ...rest }: TableProps<T>) {
  const { rows, held } = useHeld(all, rest.keyOf, grows);
  const [most, setMost] = useState(rowsAtOnce);
  const isPhone = useIsPhone();
  if (rows.length === 0)
    return (
      <p className="rounded-md border border-line px-4 py-6 text-center text-sm text-muted">
        Nothing matches the filter.
      </p>
    );
  const hidden = rows.length - most;
  const shown = { ...rest, rows: rows.slice(0, most) };
  const table = (
    <>
      {grows && <Newer count={held} />}
      {isPhone && rest.phone !== undefined ? <Items {...shown} /> : <Grid {...shown} />}
    </>
  );
  if (hidden <= 0) return table;
  return (
    <div className="flex flex-col gap-3">
      {table}
      <div className="flex items-center gap-3 text-sm text-muted">
        <Button onClick={() => setMost(most + rowsAtOnce)}>Show {Math.min(hidden, rowsAtOnce)} more</Button>
        {most} of {rows.length}
      </div>
    </div>
  );
}

const belowTopPx = 100;
const onScroll = (listener: () => void) => {
  addEventListener("scroll", listener, { passive: true });
  return () => removeEventListener("scroll", listener);
};

/** Holds newer rows back while the reader has scrolled down, so that the text does not move. */
export function useHeld<T>(
  all: readonly T[],
  keyOf: (row: T) => string,
  holds = true,
): { readonly rows: readonly T[]; readonly held: number } {
  const isReading = useSyncExternalStore(onScroll, () => holds && scrollY > belowTopPx);
  const [top, setTop] = useState<string>();
  const held = isReading
    ? Math.max(
        0,
        all.findIndex((row) => keyOf(row) === top),
      )
    : 0;
  const [first] = all;
  const newest = first === undefined ? undefined : keyOf(first);
  useEffect(() => {
    if (held === 0) setTop(newest);
  }, [held, newest]);
  return { rows: all.slice(held), held };
}

/** Says how many newer entries wait above, and goes there. Below the header, which a project has on a wide screen, too. */
export function Newer({ count }: { readonly count: number }) {
  const isInProject = useParams({ strict: false }).slug !== undefined;
  const place = isInProject ? "top-16 md:top-28" : "top-16 md:top-4";
  return (
    <div role="status" className={count === 0 ? "sr-only" : `sticky ${place} z-[1] flex justify-center`}>
      {count > 0 && (
        <Button
          look="primary"
          className="shadow-float"
          icon={<ArrowUp size={14} />}
          onClick={() => scrollTo({ top: 0 })}
        >
          {plural(count, "newer entry", "newer entries")}
        </Button>
      )}
    </div>
  );
}

function Items<T>({ caption, rows, keyOf, phone }: TableProps<T>) {
  return (
    <ul
      aria-label={caption}
      onKeyDown={moveInRows}
      className="divide-y divide-line rounded-md border border-line text-sm"
    >
      {rows.map((row) => (
        <li key={keyOf(row)} className="relative min-w-0 px-3 py-2.5 leading-5">
          {phone?.(row)}
        </li>
      ))}
    </ul>
  );
}

function Grid<T>({ caption, rows, columns, keyOf }: TableProps<T>) {
  return (
    <div onKeyDown={moveInRows} className="relative overflow-x-auto rounded-md border border-line">
      <table className="w-full border-collapse text-sm">
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr className="border-b border-line bg-panel text-left text-xs text-faint">
            {columns.map((column) => (
              <th key={column.head} scope="col" className={`h-8 px-3 font-medium ${placed(column)}`}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {rows.map((row) => (
            <tr key={keyOf(row)} className="h-9 transition-colors hover:bg-panel max-sm:h-11">
              {columns.map((column) => (
                <td key={column.head} className={`px-3 py-1 ${placed(column)}`}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Makes a link as large as its item in a phone's list. Other links and buttons of the item need `relative` to stay above it. */
export const coversItem = "after:absolute after:inset-0";

/** A column of times, hidden below 640 px. */
export function timeColumn<T>(
  head: string,
  at: (row: T) => string | null,
  { none = "–" }: { readonly none?: string } = {},
): Column<T> {
  const cell = (row: T) => {
    const time = at(row);
    return <span className="text-muted">{time === null ? none : <Ago at={time} />}</span>;
  };
  return { head, end: true, wide: true, cell };
}

function placed({ end = false, grow = false, wide = false }: Column<never>): string {
  return [
    end ? "text-right" : "",
    grow ? "w-full max-w-0 min-w-28 truncate sm:min-w-40" : "whitespace-nowrap",
    wide ? "max-sm:hidden" : "",
  ].join(" ");
}

interface Paged {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

interface ListProps<D, T> extends Omit<TableProps<T>, "rows"> {
  readonly of: ViewProps<D>["of"] & (Paged | object);
  readonly rows: (data: D) => readonly T[];
  /** Shown instead of a table without rows. */
  readonly empty?: ReactNode;
}

/** Shows what a call lists, in each of its states: loading, failed, empty, and a table with a button for older rows. */
export function List<D, T>({ of, rows, empty, ...table }: ListProps<D, T>) {
  return (
    <View of={of}>
      {(data) => {
        const all = rows(data);
        if (all.length === 0 && empty !== undefined) return empty;
        return (
          <>
            <Table rows={all} {...table} />
            {"hasNextPage" in of && <Older of={[of]} />}
          </>
        );
      }}
    </View>
  );
}

interface OlderProps {
  /** Lists whose older pages are loaded together. */
  readonly of: readonly Paged[];
  readonly label?: string;
}

export function Older({ of, label = "Show older" }: OlderProps) {
  const more = of.filter(({ hasNextPage }) => hasNextPage);
  if (more.length === 0) return null;
  const read = () => {
    for (const { fetchNextPage } of more) void fetchNextPage();
  };
  return (
    <div>
      <Button busy={more.some(({ isFetchingNextPage }) => isFetchingNextPage)} onClick={read}>
        {label}
      </Button>
    </div>
  );
}
