import { z } from "zod";
import { timestamp } from "./table.ts";

/** What a release command did to one table of the copy. */
const rehearsedTable = z.object({
  /** Schema and name, quoted for SQL where necessary. */
  table: z.string(),
  /** `renamed`: the table now has another name. */
  change: z.enum(["kept", "rewritten", "created", "dropped", "renamed"]),
  /** Null: the table did not exist. */
  rows_before: z.number().int().nullable(),
  rows_after: z.number().int().nullable(),
  /** Rows that existed before and were deleted, also those that the command replaced by others. */
  rows_removed: z.number().int(),
  /** Rows that existed before and were changed; 0 also where older reports did not count them. */
  rows_updated: z.number().int().default(0),
  columns_dropped: z.array(z.string()),
  /** What else changed of its columns, indexes, constraints and triggers, such as `index orders_note added`; at most 20. */
  changes: z.array(z.string()).default([]),
  /** How long one transaction at most kept others from reading, or from writing. 0: never seen. */
  reads_blocked_seconds: z.number(),
  writes_blocked_seconds: z.number(),
  /** What ran longest in the transaction that did so, without values in quotes. */
  statement: z.string().nullable().default(null),
});
export type RehearsedTable = z.output<typeof rehearsedTable>;

export const rehearsal = z.object({
  /** `skipped`: the release command did not run on a copy, or not to its end; this says nothing about it. */
  status: z.enum(["running", "passed", "failed", "skipped"]),
  reason: z.string().nullable(),
  /** `clone`: the file system shares the blocks of the copy with the original until one changes. */
  method: z.enum(["clone", "copy"]).nullable(),
  copy_bytes: z.number().int().nullable(),
  started_at: timestamp,
  finished_at: timestamp.nullable(),
  /** Null unless the release command ended by itself. */
  report: z
    .object({
      /** How long the release command ran on the copy. */
      seconds: z.number(),
      exit_code: z.number().int(),
      /** The tables that it changed or locked, at most 200. */
      tables: z.array(rehearsedTable),
      /** How many more tables it changed or locked. */
      further_tables: z.number().int(),
    })
    .nullable(),
});
export type Rehearsal = z.output<typeof rehearsal>;
export type RehearsalReport = NonNullable<Rehearsal["report"]>;

/** Returns one line for each table of a report, such as `orders: reads blocked for 15.3 s, 1,200,000 rows rewritten`. */
export function rehearsalLines({ tables, further_tables }: RehearsalReport): string[] {
  const more = further_tables === 0 ? [] : [`and ${counted(further_tables, "further table")}`];
  return [...tables.map((table) => `${table.table.replace(/^public\./, "")}: ${partsOf(table).join(", ")}`), ...more];
}

function partsOf(table: RehearsedTable): string[] {
  const { change, rows_before, rows_after, rows_removed, rows_updated, columns_dropped, changes } = table;
  const { reads_blocked_seconds: reads, writes_blocked_seconds: writes } = table;
  const during = table.statement === null ? "" : ` (longest: ${cut(table.statement, 60)})`;
  // A transaction that keeps others from reading often holds weaker locks, too.
  const blocked = [
    ["reads and writes", reads],
    ["writes", writes < reads + 0.1 ? 0 : writes],
  ] as const;
  const locks = blocked.flatMap(([what, seconds]) =>
    seconds < 0.1 ? [] : [`${what} blocked for ${seconds.toFixed(1)} s${during}`],
  );
  const fate = {
    kept: [],
    renamed: ["renamed"],
    created: [`new, ${counted(rows_after ?? 0, "row")}`],
    dropped: [`dropped with ${counted(rows_before ?? 0, "row")}`],
    rewritten: [`${counted(rows_before ?? 0, "row")} rewritten`],
  }[change];
  const changed = (rows_after ?? 0) - (rows_before ?? 0);
  const parts = [
    ...locks,
    ...fate,
    ...columns_dropped.map((column) => `column ${column} dropped`),
    ...(rows_removed > 0 && change !== "dropped" ? [`${counted(rows_removed, "row")} removed`] : []),
    ...(rows_updated > 0 ? [`${counted(rows_updated, "row")} updated`] : []),
    ...(changed > 0 && change !== "created" ? [`${counted(changed, "row")} more`] : []),
    ...changes,
  ];
  return parts.length === 0 ? ["locked for less than 0.1 s"] : parts;
}

const counted = (count: number, what: string): string =>
  `${count.toLocaleString("en-US")} ${what}${count === 1 ? "" : "s"}`;

const cut = (text: string, most: number): string => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
