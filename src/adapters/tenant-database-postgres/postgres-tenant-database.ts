import pg from "pg";
import type {
  QueryResult,
  TablesPage,
  TablesQuery,
  TenantDatabase,
  Connections,
  Extension,
} from "../../ports/tenant-database.ts";
import { createAnswerMemory } from "./answer-memory.ts";
import { findTable, kindOf, visible } from "./catalogue.ts";
import { presentCell } from "./cells.ts";
import { readRows } from "./read-rows.ts";
import { inSession, type LimitedResult, type Session, type SessionOptions, applicationName } from "./session.ts";
import { createSlots } from "./slots.ts";
import { refuseStatement, Stopped } from "./unable.ts";
import { deleteRow, findRow, insertRow, updateRow } from "./write-rows.ts";

export interface PostgresTenantDatabaseOptions {
  /** How many calls may read one database at the same time; they share the role's connections with the application. */
  readonly connections: number;
  /** Terminates a session of the project's role from outside, whatever it is executing. */
  readonly endSession: SessionOptions["endSession"];
  readonly limitSession: SessionOptions["limitSession"];
  /** What the answers of all databases may take of the memory together. Default 256 MiB. */
  readonly answerBytes?: number;
}

const defaultAnswerBytes = 256 * 1024 * 1024;

// Dashboard pages send a few requests at once; a request that waits longer than this gets `unavailable`.
const slotWaitMs = 2000;

/** Reads projects' databases over their sockets, as the projects' own roles. */
export function createPostgresTenantDatabase(options: PostgresTenantDatabaseOptions): TenantDatabase {
  const slots = createSlots({ count: options.connections, waitMs: slotWaitMs });
  const memory = createAnswerMemory(options.answerBytes ?? defaultAnswerBytes);
  const session: SessionOptions = { ...options, slots, memory };
  return {
    listTables: (login, query) => inSession(session, { login, mode: "READ ONLY" }, (open) => listTables(open, query)),
    readRows: (login, name, query) =>
      inSession(session, { login, mode: "READ ONLY" }, async (open) =>
        readRows(open, await findTable(open, name), query),
      ),
    query: (login, statement) =>
      inSession(session, { login, mode: "READ ONLY", search_path: "public" }, (open) => runQuery(open, statement)),
    listConnections: (login) => inSession(session, { login, mode: "READ ONLY" }, listConnections),
    endConnection: (login, processId) =>
      inSession(session, { login, mode: "READ ONLY" }, (open) => endConnection(open, processId)),
    listExtensions: (login) =>
      inSession(session, { login, mode: "READ ONLY" }, (session) => session.query<Extension>(extensions)),
    insertRow: (login, name, values) =>
      inSession(session, { login, mode: "READ WRITE" }, async (open) =>
        insertRow(open, await findTable(open, name), values),
      ),
    updateRow: (login, name, change) =>
      inSession(session, { login, mode: "READ WRITE" }, async (open) =>
        updateRow(open, await findTable(open, name), change),
      ),
    findRow: (login, name, key) =>
      inSession(session, { login, mode: "READ ONLY" }, async (open) => findRow(open, await findTable(open, name), key)),
    deleteRow: (login, name, key) =>
      inSession(session, { login, mode: "READ WRITE" }, async (open) =>
        deleteRow(open, await findTable(open, name), key),
      ),
  };
}

type Sizes = "exact" | "estimated";

/** Returns a page of the tables. Sizes are exact unless a table is locked, such as by a migration. */
async function listTables(session: Session, query: TablesQuery): Promise<TablesPage> {
  try {
    return await list(session, query, "exact");
  } catch (error) {
    if ((error as { code?: string }).code !== "55P03") throw error;
    await session.query("ROLLBACK");
    return list(session, query, "estimated");
  }
}

async function list(session: Session, query: TablesQuery, sizes: Sizes): Promise<TablesPage> {
  const values = [query.q ?? null, String(query.limit), String(query.offset)];
  const [found] = await session.query<{ total: number; tables: TablesPage["tables"] | null }>(
    statement(query, sizes),
    values,
  );
  return { total: found?.total ?? 0, tables: found?.tables ?? [] };
}

// The functions in the select list run after LIMIT, only for one page's tables, unless the list is sorted by them.
function statement({ sort, dir }: TablesQuery, sizes: Sizes): string {
  const order = `${sort} ${dir === "desc" ? "DESC" : "ASC"} NULLS LAST, schema, name`;
  return `WITH relation AS (
      SELECT c.oid, c.relkind, c.reltuples, c.relpages, c.reltoastrelid, n.nspname::pg_catalog.text AS schema, c.relname::pg_catalog.text AS name, ${kindOf} AS kind
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE ${visible} AND ($1::pg_catalog.text IS NULL
        OR pg_catalog.strpos(pg_catalog.lower(pg_catalog.concat(n.nspname, '.', c.relname)), pg_catalog.lower($1)) > 0)
    ), page AS (
      SELECT schema, name, kind, (${rows}) AS estimated_rows, (${sizes === "exact" ? exactSize : roughSize}) AS size_bytes
      FROM relation c ORDER BY ${order} LIMIT $2::pg_catalog.int8 OFFSET $3::pg_catalog.int8
    ) SELECT (SELECT pg_catalog.count(*) FROM relation)::pg_catalog.int4 AS total, (SELECT pg_catalog.json_agg(page ORDER BY ${order}) FROM page) AS tables`;
}

const rowsOf = (table: string) => `CASE WHEN pg_catalog.pg_stat_get_live_tuples(${table}.oid) > 0
  THEN pg_catalog.pg_stat_get_live_tuples(${table}.oid) ELSE GREATEST(${table}.reltuples, 0)::pg_catalog.int8 END`;

const leaves = (
  what: string,
) => `SELECT pg_catalog.sum(${what})::pg_catalog.int8 FROM pg_catalog.pg_partition_tree(c.oid) leaf
  JOIN pg_catalog.pg_class l ON l.oid = leaf.relid WHERE leaf.isleaf AND l.relkind = 'r'`;

const rows = `CASE WHEN c.relkind IN ('r', 'm') THEN ${rowsOf("c")} WHEN c.relkind = 'p' THEN COALESCE((${leaves(rowsOf("l"))}), 0) END`;

const exactSize = `CASE WHEN c.relkind IN ('r', 'm') THEN pg_catalog.pg_total_relation_size(c.oid)
  WHEN c.relkind = 'p' THEN COALESCE((${leaves("pg_catalog.pg_total_relation_size(l.oid)")}), 0) END`;

// Uses the sizes that vacuum and analyze recorded last, which needs no lock on the table.
const pagesOf = (
  table: string,
) => `(SELECT pg_catalog.sum(x.relpages) FROM pg_catalog.pg_class x WHERE x.oid IN (${table}.oid, ${table}.reltoastrelid)
    OR x.oid IN (SELECT i.indexrelid FROM pg_catalog.pg_index i WHERE i.indrelid = ${table}.oid)) * pg_catalog.current_setting('block_size')::pg_catalog.int8`;

const roughSize = `CASE WHEN c.relkind IN ('r', 'm') THEN ${pagesOf("c")} WHEN c.relkind = 'p' THEN COALESCE((${leaves(pagesOf("l"))}), 0) END`;

const mostRows = 500;
// A response stays in memory until its client has read it.
const mostBytes = 2 * 1024 * 1024;

/** Runs a user's statement. The first query takes a snapshot, after which the transaction can't be switched to read-write. */
async function runQuery(session: Session, statement: string): Promise<QueryResult> {
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

const mostConnections = 100;
const queryLetters = 200;

const time = (column: string) => `pg_catalog.to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS`;

// PostgreSQL hides what sessions of other roles do. On a server of several projects, only those of this database are listed.
const connections = `SELECT pid, pg_catalog.left(application_name, 100) AS application, state,
    CASE WHEN application_name = '${applicationName}' THEN 'platform' WHEN usename = current_user THEN 'application' WHEN pg_catalog.starts_with(usename, current_user || '_t') THEN 'person' ELSE 'platform' END AS kind,
    ${time("backend_start")} connected_at, ${time("state_change")} since, wait_event_type || ': ' || wait_event AS waits_for,
    CASE WHEN state IS NOT NULL THEN pg_catalog.left(query, ${queryLetters}) END AS query
  FROM pg_catalog.pg_stat_activity
  WHERE datname = pg_catalog.current_database() AND usename IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()
  ORDER BY (state IS DISTINCT FROM 'idle') DESC, state_change, pid LIMIT ${mostConnections + 1}`;

async function listConnections(session: Session): Promise<Connections> {
  const found = await session.query<Connections["connections"][number]>(connections);
  const limit = "SELECT rolconnlimit AS limit FROM pg_catalog.pg_roles WHERE rolname = current_user";
  const [role] = await session.query<{ limit: number }>(limit);
  return {
    connections: found.slice(0, mostConnections),
    limit: role?.limit ?? 0,
    more: found.length > mostConnections,
  };
}

/** Ends a session of the project's role; others are missing, such as a backup's. */
async function endConnection(session: Session, processId: number): Promise<null> {
  // Larger than any process id.
  if (processId > 2_147_483_647) throw new Stopped({ outcome: "missing" });
  const ended = await session.query(
    `SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity
    WHERE pid = $1::pg_catalog.int4 AND usename = current_user AND datname = pg_catalog.current_database()`,
    [String(processId)],
  );
  if (ended.length === 0) throw new Stopped({ outcome: "missing" });
  return null;
}

// A trusted extension is created with the rights of the server's superuser by whoever may create in the database.
const extensions = `SELECT e.name::pg_catalog.text AS name, e.installed_version AS version, e.default_version AS available_version,
    COALESCE(e.comment, '') AS about, CASE WHEN v.trusted THEN 'project' ELSE 'operator' END AS creator
  FROM pg_catalog.pg_available_extensions e
  LEFT JOIN pg_catalog.pg_available_extension_versions v ON v.name = e.name AND v.version = e.default_version
  ORDER BY e.installed_version IS NULL, v.trusted DESC NULLS LAST, e.name`;
