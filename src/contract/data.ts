import { z } from "zod";
import { branchName } from "./branches.ts";
import { ofProject, queryInteger, slugParam, timestamp, row } from "./table.ts";
import { limits } from "./limits.ts";

const kind = z.enum(["table", "partitioned_table", "partition", "view", "materialized_view", "foreign_table"]);

// Names in the tenant's database. Any text is accepted, and an impossible name results in `not_found`.
const tableParams = slugParam.extend({ schema: z.string(), table: z.string() });

const search = z
  .string()
  .max(200)
  .regex(/^[^\0]*$/, "must not contain NUL")
  .optional();

const page = {
  limit: queryInteger(1, limits.table_rows, 50),
  offset: queryInteger(0, 999_999_999, 0),
  dir: z.enum(["asc", "desc"]).default("asc"),
  q: search,
};

const of = {
  /** Another database of the project, such as a restored one. Defaults to the project's own. */
  database: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,63}$/, "must be the name of a database")
    .optional(),
  branch: branchName.optional(),
};

const table = z.object({
  schema: z.string(),
  name: z.string(),
  kind,
  /** Null for relations that store no rows themselves. */
  estimated_rows: z.number().int().nullable(),
  /** Includes indexes and TOAST data. Null for relations that store nothing. */
  size_bytes: z.number().int().nullable(),
});

const column = z.object({
  name: z.string(),
  /** As PostgreSQL spells it, with a schema unless it is built in. */
  type: z.string(),
  nullable: z.boolean(),
  default: z.string().nullable(),
  generated: z.enum(["stored", "virtual"]).nullable(),
  identity: z.enum(["always", "by_default"]).nullable(),
  primary_key: z.boolean(),
});

// Not z.record, which drops a column named __proto__.
const byColumn = z.unknown().meta({ type: "object", additionalProperties: true, description: "Values by column name" });

const namedValues = z
  .unknown()
  .refine(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "must be an object of column names and values",
  )
  .meta({ type: "object", additionalProperties: true, description: "Values by column name" });

const key = namedValues;

const cut = z.array(z.string()).meta({ description: "Columns whose text was truncated at 4 KiB" });

const connection = z.object({
  /** The process of the connection at the server. */
  pid: z.number().int(),
  /** `application`: the project's own role, which owners may end. `person`: a tunnel. `platform`: Berth itself, such as a backup. */
  kind: z.enum(["application", "person", "platform"]),
  application: z.string(),
  /** What the server calls it: `active`, `idle`, `idle in transaction`. Null where only Berth may see it, as everything below. */
  state: z.string().nullable(),
  connected_at: timestamp.nullable(),
  since: timestamp.nullable(),
  /** What it waits for, such as `Lock: transactionid`. */
  waits_for: z.string().nullable(),
  /** Its last statement, cut at 200 characters. */
  query: z.string().nullable(),
});

const statement = z.object({
  /** With `$1` for each value, cut at 500 characters. */
  query: z.string(),
  calls: z.number().int(),
  rows: z.number().int(),
  total_ms: z.number(),
  mean_ms: z.number(),
  most_ms: z.number(),
});

const extension = z.object({
  name: z.string(),
  /** Null while it is not installed. */
  version: z.string().nullable(),
  available_version: z.string().nullable(),
  about: z.string(),
  /** `project`: the project's own role may create it. `operator`: only a superuser of the server. */
  creator: z.enum(["project", "operator"]),
});

export const rows = [
  row({
    ...ofProject,
    name: "data.tables",
    request: "GET /v1/projects/:slug/data/tables",
    may: "member data:read",
    query: z.object({
      ...page,
      limit: queryInteger(1, limits.table_rows, 100),
      sort: z.enum(["schema", "name", "kind", "estimated_rows", "size_bytes"]).default("schema"),
      ...of,
    }),
    result: z.object({ tables: z.array(table), total: z.number().int(), next_offset: z.number().int().nullable() }),
    errors: ["no_database", "conflict", "query_timeout"],
    waits: true,
    large: true,
    summary: "List the tables and views of the project's database",
  }),
  row({
    ...ofProject,
    name: "data.rows",
    request: "GET /v1/projects/:slug/data/tables/:schema/:table",
    may: "member data:read",
    params: tableParams,
    query: z.object({ ...page, sort: z.string().max(300).optional(), ...of }),
    result: z.object({
      schema: z.string(),
      name: z.string(),
      kind,
      columns: z.array(column),
      primary_key: z.array(z.string()).nullable(),
      keys: z.array(z.array(z.string())),
      rows: z.array(byColumn),
      /** The version of each row, which `data.update` compares; null for rows that have none, such as a view's. */
      versions: z.array(z.string().nullable()),
      cut: z.array(z.object({ row: z.number().int(), columns: cut })),
      total: z.number().int().nullable(),
      estimated: z.boolean(),
      next_offset: z.number().int().nullable(),
    }),
    errors: ["no_database", "conflict", "query_timeout"],
    waits: true,
    large: true,
    summary: "Read a table's columns and a page of its rows",
  }),
  row({
    ...ofProject,
    name: "data.query",
    request: "POST /v1/projects/:slug/database/query",
    may: "member data:read",
    body: z.strictObject({
      /** One read-only statement. */
      sql: z
        .string()
        .min(1)
        .max(limits.query_characters)
        .regex(/^[^\0]*$/, "must not contain NUL"),
      ...of,
    }),
    result: z.object({
      columns: z.array(z.object({ name: z.string(), type: z.string() })),
      /** Lists of cells, in the order of the columns. */
      rows: z.array(z.array(z.unknown())),
      /** Cells cut at 4 KiB, by row index and column indexes. */
      cut: z.array(z.object({ row: z.number().int(), columns: z.array(z.number().int()) })),
      /** There are rows that are not included. */
      more: z.boolean(),
    }),
    errors: ["no_database", "conflict", "query_timeout"],
    waits: true,
    large: true,
    summary: "Run one read-only SQL statement, for at most 5 s and 500 rows",
  }),
  row({
    ...ofProject,
    name: "data.connections",
    request: "GET /v1/projects/:slug/database/connections",
    may: "member data:read",
    query: z.object(of),
    result: z.object({ connections: z.array(connection), limit: z.number().int(), more: z.boolean() }),
    errors: ["no_database", "conflict", "query_timeout"],
    waits: true,
    summary: "List the connections to the project's database: what each does, and since when",
  }),
  row({
    ...ofProject,
    name: "data.end_connection",
    request: "DELETE /v1/projects/:slug/database/connections/:pid",
    may: "owner data:write",
    approval: true,
    params: slugParam.extend({ pid: z.string().regex(/^[1-9]\d{0,9}$/, "must be the pid of a connection") }),
    query: z.object(of),
    errors: ["no_database", "conflict", "query_timeout"],
    activity: "data.connection_ended",
    waits: true,
    summary: "End a connection of the application; what it has not committed is rolled back",
  }),
  row({
    ...ofProject,
    name: "data.statements",
    request: "GET /v1/projects/:slug/database/statements",
    may: "member data:read",
    query: z.object({ ...of, sort: z.enum(["total", "mean", "most"]).default("total") }),
    result: z.object({
      /** False where the server does not collect statements. */
      collected: z.boolean(),
      statements: z.array(statement),
    }),
    errors: ["no_database", "conflict"],
    waits: true,
    summary: "List the statements that took the most time of the project's database, without their values",
  }),
  row({
    ...ofProject,
    name: "data.extensions",
    request: "GET /v1/projects/:slug/database/extensions",
    may: "member data:read",
    query: z.object(of),
    result: z.object({ extensions: z.array(extension) }),
    errors: ["no_database", "conflict", "query_timeout"],
    waits: true,
    summary: "List PostgreSQL's extensions: what is installed, what is available, and who may create it",
  }),
  row({
    ...ofProject,
    name: "data.insert",
    request: "POST /v1/projects/:slug/data/tables/:schema/:table/rows",
    may: "owner data:write",
    params: tableParams,
    body: z.strictObject({ values: namedValues }),
    body_bytes: limits.row_body_bytes,
    result: z.object({ row: byColumn, cut }),
    success: [201],
    errors: ["no_database", "conflict", "query_timeout", "disk_limit_reached"],
    activity: "data.inserted",
    waits: true,
    summary: "Add a row to a table; returns the stored row",
  }),
  row({
    ...ofProject,
    name: "data.update",
    request: "PATCH /v1/projects/:slug/data/tables/:schema/:table/rows",
    may: "owner data:write",
    approval: true,
    params: tableParams,
    body: z.strictObject({
      key,
      values: namedValues,
      /** The row's version when it was read: a row that has changed since then is left as it is. */
      version: z
        .string()
        .regex(/^\d{1,10}$/, "must be a version of the row")
        .optional(),
    }),
    body_bytes: limits.row_body_bytes,
    result: z.object({ row: byColumn, cut }),
    errors: ["no_database", "conflict", "query_timeout", "disk_limit_reached"],
    activity: "data.updated",
    waits: true,
    summary: "Change columns of the one row that a primary key, or a unique key without nulls, names",
  }),
  row({
    ...ofProject,
    name: "data.delete",
    request: "DELETE /v1/projects/:slug/data/tables/:schema/:table/rows",
    may: "owner data:write",
    approval: true,
    params: tableParams,
    body: z.strictObject({ key }),
    body_bytes: limits.row_body_bytes,
    errors: ["no_database", "conflict", "query_timeout"],
    activity: "data.deleted",
    waits: true,
    summary: "Delete the one row that a primary key, or a unique key without nulls, names",
  }),
] as const;
