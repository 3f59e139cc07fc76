import pg from "pg";
import type { QueryResult } from "../../ports/tenant-database.ts";
import { presentCell } from "./cells.ts";
import type { LimitedResult, Session } from "./session.ts";
import { refuseStatement } from "./unable.ts";

const mostRows = 500;
// A response stays in memory until its client has read it.
const mostBytes = 2 * 1024 * 1024;

/** Runs a user's statement. The first query takes a snapshot, after which the transaction can't be switched to read-write. */
export async function runQuery(session: Session, statement: string): Promise<QueryResult> {
  await session.query("SELECT");
  const { fields, rows, more } = await session.limited(statement, mostRows).catch(refuseStatement);
  const types = await typeNames(session, fields);
  const result = { rows: [] as unknown[][], cut: [] as { row: number; columns: number[] }[] };
  let bytes = 0;
  for (const [row, texts] of rows.entries()) {
    if (bytes > mostBytes) break;
    const cells = texts.map((text, column) => presentCell(types[column]?.name ?? "", text));
    const columns = cells.flatMap(({ cut }, column) => (cut ? [column] : []));
    result.rows.push(cells.map(({ value }) => value));
    if (columns.length > 0) result.cut.push({ row, columns });
    bytes += cells.reduce((sum, { value }) => sum + sizeOf(value), 0);
  }
  const columns = fields.map(({ name }, column) => ({ name, type: types[column]?.shown ?? "unknown" }));
  return { columns, ...result, more: more || result.rows.length < rows.length };
}

// Counts 16 for anything but text: only JSON can be larger, and its text was no longer than a cell.
function sizeOf(value: unknown): number {
  return typeof value === "string" ? value.length : 16;
}

interface TypeName {
  /** PostgreSQL's internal name, `int4`. */
  readonly name: string;
  /** The name in SQL, such as `integer`. */
  readonly shown: string;
}

const builtinNames = new Map(Object.entries(pg.types.builtins).map(([name, oid]) => [oid, name.toLowerCase()]));

/** Returns the columns' types. A statement such as COMMIT has no columns, and no query may follow it. */
async function typeNames(session: Session, fields: LimitedResult["fields"]): Promise<readonly TypeName[]> {
  if (fields.length === 0) return [];
  const oids = fields.map(({ dataTypeID }) => dataTypeID);
  const shown = await session.query<{ shown: string }>(
    `SELECT pg_catalog.format_type(given.oid::pg_catalog.oid, NULL) AS shown
    FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.int8[])) WITH ORDINALITY AS given (oid, place) ORDER BY given.place`,
    [`{${oids.join()}}`],
  );
  return oids.map((oid, index) => ({ name: builtinNames.get(oid) ?? "", shown: shown[index]?.shown ?? "unknown" }));
}
