import type { RehearsalReport, RehearsedTable } from "../../contract/rehearsal.ts";
import type { HeldLock, TableState } from "../../ports/postgres-host.ts";

const mostTables = 200;

interface Seen {
  readonly before: readonly TableState[];
  readonly after: readonly TableState[];
  readonly locks: readonly HeldLock[];
  readonly seconds: number;
  readonly exit_code: number;
}

/** Compares a copy's tables before and after a release command. Those that lost the most come first. */
export function reportOf({ before, after, locks, seconds, exit_code }: Seen): RehearsalReport {
  const byId = new Map(after.map((table) => [table.oid, table]));
  const byName = new Map(after.map((table) => [table.table, table]));
  const replaced = new Set<number>();
  const compared = before.map((was) => {
    // Some tools create a table again under the same name and copy its rows.
    const is = byId.get(was.oid) ?? byName.get(was.table);
    if (is !== undefined) replaced.add(is.oid);
    return compare(was, is, locks);
  });
  const created = after.filter(({ oid }) => !replaced.has(oid)).map((table) => createdTable(table, locks));
  const told = [...compared, ...created]
    .filter((table) => isWorthTelling(table))
    .toSorted((a, b) => weight(b) - weight(a));
  const tables = told.slice(0, mostTables);
  return { seconds, exit_code, tables, further_tables: told.length - tables.length };
}

function compare(was: TableState, is: TableState | undefined, locks: readonly HeldLock[]): RehearsedTable {
  const table = { table: was.table, rows_before: was.rows, ...blockedBy(was.table, locks) };
  if (is === undefined)
    return { ...table, change: "dropped", rows_after: null, rows_removed: was.rows, ...nothingChanged };
  const isSame = is.oid === was.oid;
  const left = new Set(isSame ? Object.keys(is.columns) : Object.values(is.columns));
  const columns_dropped = Object.entries(was.columns).flatMap(([number, column]) =>
    left.has(isSame ? number : column) ? [] : [column],
  );
  return {
    ...{ ...table, rows_after: is.rows, columns_dropped },
    change: is.table !== was.table ? "renamed" : is.file === was.file ? "kept" : "rewritten",
    rows_removed: Math.min(was.rows, Math.max(0, was.rows - is.rows, isSame ? removedOf(was, is) : 0)),
    rows_updated: isSame ? Math.min(was.rows, is.updated - was.updated) : 0,
    changes: isSame ? changesOf(was, is) : [],
  };
}

/** TRUNCATE counts no rows, but gives the table another file: what is there and was not inserted was there before. */
function removedOf(was: TableState, is: TableState): number {
  const deleted = is.deleted - was.deleted;
  return is.file === was.file ? deleted : Math.max(deleted, was.rows + (is.inserted - was.inserted) - is.rows);
}

const mostChanges = 20;

/** Says in words what changed of a table's columns, indexes, constraints and triggers, beside dropped columns. */
function changesOf(was: TableState, is: TableState): string[] {
  const columns = Object.entries(is.columns).flatMap(([number, column]) => {
    const [before, type] = [was.columns[number], is.types[number]];
    if (before === undefined) return [`column ${column} added`];
    const renamed = before === column ? [] : [`column ${before} renamed to ${column}`];
    return type === was.types[number] ? renamed : [...renamed, `column ${column} is now ${type}`];
  });
  const added = Object.entries(is.parts).flatMap(([part, state]) => {
    const note = state === "valid" || state === "enabled" ? "" : `, ${state}`;
    if (was.parts[part] === undefined) return [`${part} added${note}`];
    return was.parts[part] === state ? [] : [`${part} is now ${state}`];
  });
  const dropped = Object.keys(was.parts).flatMap((part) => (part in is.parts ? [] : [`${part} dropped`]));
  const all = [...columns, ...added, ...dropped];
  return all.length <= mostChanges
    ? all
    : [...all.slice(0, mostChanges - 1), `${all.length - mostChanges + 1} more changes`];
}

const nothingChanged = { rows_updated: 0, columns_dropped: [], changes: [] };

function createdTable({ table, rows }: TableState, locks: readonly HeldLock[]): RehearsedTable {
  const nothing = { rows_before: null, rows_removed: 0, ...nothingChanged };
  return { table, change: "created", rows_after: rows, ...nothing, ...blockedBy(table, locks) };
}

function blockedBy(name: string, locks: readonly HeldLock[]) {
  const held = locks.filter((lock) => lock.table === name).toSorted((a, b) => b.seconds - a.seconds);
  const longest = (blocks: HeldLock["blocks"]) => held.find((lock) => lock.blocks === blocks)?.seconds ?? 0;
  return {
    reads_blocked_seconds: longest("reads"),
    writes_blocked_seconds: longest("writes"),
    statement: shownStatement(held[0]?.statement ?? null),
  };
}

const mostOfStatement = 200;
/** Text in quotes of every kind, to its end or to that of a statement that was cut. */
const quoted = /\be'(?:[^'\\]|''|\\.)*(?:'|$)|'(?:[^']|'')*(?:'|$)|\$(\w*)\$[\s\S]*?(?:\$\1\$|$)/gi;

function shownStatement(statement: string | null): string | null {
  const shown =
    statement
      ?.replace(/--[^\n]*/g, " ")
      .replace(quoted, "'…'")
      .replace(/\s+/g, " ")
      .trim() ?? "";
  if (shown === "") return null;
  return shown.length <= mostOfStatement ? shown : `${shown.slice(0, mostOfStatement - 1)}…`;
}

const isWorthTelling = (table: RehearsedTable): boolean =>
  table.change !== "kept" ||
  table.rows_before !== table.rows_after ||
  table.rows_removed > 0 ||
  table.columns_dropped.length > 0 ||
  table.rows_updated > 0 ||
  table.changes.length > 0 ||
  table.reads_blocked_seconds + table.writes_blocked_seconds > 0;

const weight = ({ change, rows_removed, columns_dropped, ...table }: RehearsedTable): number =>
  change === "dropped" || columns_dropped.length > 0
    ? Number.MAX_SAFE_INTEGER
    : rows_removed + table.reads_blocked_seconds + table.writes_blocked_seconds;

/** What an agent's deploy may destroy without a human. */
export interface LossLimits {
  readonly rows: number;
  /** Of the rows of one table; the smaller of both counts. */
  readonly percent: number;
}

/** Returns what a person must approve: dropped tables and columns, and tables that lose more rows than allowed. */
export function lossesOf({ tables }: RehearsalReport, limits: LossLimits): RehearsedTable[] {
  return tables.filter(({ change, columns_dropped, rows_before, rows_removed }) => {
    const allowed = Math.min(limits.rows, Math.floor(((rows_before ?? 0) * limits.percent) / 100));
    return change === "dropped" || columns_dropped.length > 0 || rows_removed > allowed;
  });
}

/** Returns what identifies losses for an approval: the same tables and columns, and numbers of rows of the same magnitude. */
export function sameLosses(losses: readonly RehearsedTable[]) {
  return losses
    .map(({ table, change, columns_dropped, rows_removed }) => ({
      ...{ table, columns_dropped },
      is_dropped: change === "dropped",
      magnitude: String(rows_removed).length,
    }))
    .toSorted((a, b) => (a.table < b.table ? -1 : 1));
}
