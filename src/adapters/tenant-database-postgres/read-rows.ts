import { escapeIdentifier as name } from "pg";
import type { RowsPage, RowsQuery, ShownRow } from "../../ports/tenant-database.ts";
import { columnOf, type Column, type Table } from "./catalogue.ts";
import { cellExpression, presentRow } from "./cells.ts";
import type { Session } from "./session.ts";
import { Stopped } from "./unable.ts";

// The most rows to count exactly: 50,000 rows take milliseconds, and above that, the last digit does not matter.
const mostCounted = 50_000;
const countTimeoutMs = 1000;
// In the planner's cost units: about half a second.
const mostCountCost = 50_000;
// A response stays in memory until its client has read it.
const mostPageBytes = 2 * 1024 * 1024;

export async function readRows(session: Session, table: Table, query: RowsQuery): Promise<RowsPage> {
  if (query.sort !== undefined && columnOf(table, query.sort) === undefined)
    throw new Stopped({ outcome: "invalid", field: "sort", problem: "is not a column of the table" });
  const { rows, versions, more, isWhole } = await readPage(session, table, query);
  const seen = query.offset + rows.length;
  const isLast = !more && (rows.length > 0 || query.offset === 0);
  const count = isLast
    ? { total: seen, estimated: false }
    : isWhole
      ? await countRows(session, table, query)
      : notCounted;
  const primary = table.keys.find((key) => key.primary);
  return {
    kind: table.kind,
    columns: table.columns.map(({ name: column, type, nullable, default: standard, generated, identity }) => ({
      ...{ name: column, type, nullable, default: standard, generated, identity },
    })),
    primary_key: primary?.columns ?? null,
    keys: table.keys.map((key) => key.columns),
    rows,
    versions,
    more,
    ...count,
  };
}

const notCounted = { total: null, estimated: true };

/** Reads one row more than requested, to see whether there are more; stops at 2 MiB. */
async function readPage(session: Session, table: Table, query: RowsQuery) {
  const rows: ShownRow[] = [];
  const versions: (string | null)[] = [];
  let bytes = 0;
  let more = false;
  const take = (texts: readonly (string | null)[]) => {
    if (rows.length === query.limit || bytes > mostPageBytes) {
      more = true;
      return rows.length === query.limit;
    }
    rows.push(presentRow(table.columns, texts));
    versions.push(texts[table.columns.length] ?? null);
    bytes += texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
    return true;
  };
  const { text, values } = pageStatement(table, query);
  const isWhole = await session.each(text, values, take).catch((error: unknown) => refuseOrder(error, query));
  return { rows, versions, more, isWhole };
}

// 42883: the type has no ordering operator, such as json, xml and point.
function refuseOrder(error: unknown, { sort }: RowsQuery): never {
  const { code, where } = error as { code?: string; where?: string };
  if (code === "42883" && where === undefined && sort !== undefined)
    throw new Stopped({ outcome: "invalid", field: "sort", problem: "is a column whose type has no order" });
  throw error;
}

/** Formats only the rows of the page, not all that are sorted or skipped. */
function pageStatement(table: Table, query: RowsQuery): { text: string; values: string[] } {
  const { from, values } = fromWhere(table, query.q);
  const [shownVersion, version] = isVersioned(table) ? ["page.xmin::pg_catalog.text", "t.xmin"] : ["NULL", "NULL"];
  const shown = [...table.columns.map((column) => cellExpression("page", column)), shownVersion].join(", ");
  const inner = [...table.columns.map((column) => `t.${name(column.name)}`), version].join(", ");
  const bounds = `LIMIT ${query.limit + 1} OFFSET ${query.offset}`;
  return { text: `SELECT ${shown} FROM (SELECT ${inner} ${from} ${orderBy(table, query)} ${bounds}) AS page`, values };
}

/** The transaction that wrote a row is its version: a row that another one has changed since then has another. */
export function isVersioned({ kind }: Table): boolean {
  return kind === "table" || kind === "partitioned_table" || kind === "partition";
}

/** Sorts by the chosen column, then by a key, so that pages neither repeat nor miss rows. */
function orderBy(table: Table, { sort, dir }: RowsQuery): string {
  const key = table.keys[0]?.columns.map((column) => `t.${name(column)}`) ?? (sort === undefined ? [] : placeOf(table));
  const terms = [...(sort === undefined ? [] : [`t.${name(sort)}`]), ...key];
  const word = dir === "desc" ? "DESC" : "ASC";
  return terms.length === 0 ? "" : `ORDER BY ${[...new Set(terms)].map((term) => `${term} ${word}`).join(", ")}`;
}

// Returns the columns of a row's physical position; views and foreign tables have none.
function placeOf({ kind }: Table): string[] {
  return kind === "view" || kind === "foreign_table" ? [] : ["t.tableoid", "t.ctid"];
}

function fromWhere(table: Table, q: string | undefined): { from: string; values: string[] } {
  const from = `FROM ${tableName(table)} AS t`;
  if (q === undefined) return { from, values: [] };
  const tests = table.columns
    .filter(isTextLike)
    .map((column) => `pg_catalog.strpos(${searched(column)}, pg_catalog.lower($1::pg_catalog.text)) > 0`);
  if (tests.length === 0) return { from: `${from} WHERE $1::pg_catalog.text IS NULL`, values: [q] };
  return { from: `${from} WHERE ${tests.join(" OR ")}`, values: [q] };
}

const furtherTexts = ["uuid", "json", "jsonb", "xml"];

function isTextLike({ category, base_type }: Column): boolean {
  return category === "S" || category === "E" || furtherTexts.includes(base_type ?? "");
}

// Uses the database's default collation: a column's own may not support searching.
function searched({ name: column }: Column): string {
  return `pg_catalog.lower((t.${name(column)})::pg_catalog.text COLLATE pg_catalog."default")`;
}

export function tableName({ schema, name: table }: Table): string {
  return `${name(schema)}.${name(table)}`;
}

/** Counts up to 50,000 rows exactly if the planner expects that to be cheap; else returns its estimate, which a search has not. */
async function countRows(
  session: Session,
  table: Table,
  { q }: RowsQuery,
): Promise<{ total: number | null; estimated: boolean }> {
  const { from, values } = fromWhere(table, q);
  const [explained] = await session.query<Explained>(`EXPLAIN (FORMAT JSON) SELECT ${from}`, values);
  const plan = explained?.["QUERY PLAN"][0].Plan ?? { "Plan Rows": 0, "Total Cost": 0 };
  const estimate = { total: q === undefined ? plan["Plan Rows"] : null, estimated: true };
  if (plan["Total Cost"] > mostCountCost && (q !== undefined || plan["Plan Rows"] > 2 * mostCounted)) return estimate;
  const counted = await countSome(session, from, values);
  if (counted !== undefined && counted <= mostCounted) return { total: counted, estimated: false };
  return estimate.total === null ? estimate : { total: Math.max(estimate.total, counted ?? 0), estimated: true };
}

interface Explained {
  readonly "QUERY PLAN": readonly [{ readonly Plan: { readonly "Plan Rows": number; readonly "Total Cost": number } }];
}

async function countSome(session: Session, from: string, values: string[]): Promise<number | undefined> {
  try {
    await session.query(`SET LOCAL statement_timeout = ${countTimeoutMs}`);
    const [counted] = await session.query<{ total: number }>(
      `SELECT pg_catalog.count(*)::pg_catalog.int4 AS total FROM (SELECT ${from} LIMIT ${mostCounted + 1}) AS counted`,
      values,
    );
    return counted?.total;
  } catch (error) {
    if ((error as { code?: string }).code === "57014") return undefined;
    throw error;
  }
}
