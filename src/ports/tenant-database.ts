import type { Result } from "../contract/routes.ts";
import type { ServerAddress } from "../kit/server-address.ts";
import type { ServerTls } from "../kit/server-tls.ts";
import type { DatabaseSpec } from "./postgres-host.ts";

/**
 * Reads a project's database and changes single rows in it, for people who browse it. Each call logs in with one connection, always as the
 * project's role or its reader. Objects of the project's owner (functions, views, triggers, policies) may run and may be hostile: they
 * can't write during a read, get 5 s per statement and 6 s per call, and then the session is terminated from outside. Names come only from
 * the catalogue; values are bound. Anything that the user or the owner can cause is an outcome; only faults of the platform are thrown.
 */
export interface TenantDatabase {
  /** Lists tables, views and similar relations outside PostgreSQL's own schemas. */
  listTables(login: TenantLogin, query: TablesQuery): Promise<Looked<TablesPage>>;
  /** Returns a page of rows. The order is the same in every call if the table has a key or is sorted. */
  readRows(login: TenantLogin, table: TableName, query: RowsQuery): Promise<Looked<RowsPage>>;
  /** Runs one read-only statement, in a transaction that is never committed. The login should be unable to write anyway. */
  query(login: TenantLogin, statement: string): Promise<Looked<QueryResult>>;
  /** Lists up to 100 connections to the database that `login` names, without the call's own. */
  listConnections(login: TenantLogin): Promise<Looked<Connections>>;
  /** Ends one connection of the project's own role to that database. */
  endConnection(login: TenantLogin, processId: number): Promise<Looked<null>>;
  /** Lists the extensions that the server has, and which of them are in the database. */
  listExtensions(login: TenantLogin): Promise<Looked<readonly Extension[]>>;
  /** Inserts one row, given as column names and JSON values, and returns it as stored. */
  insertRow(login: TenantLogin, table: TableName, values: JsonObject): Promise<Looked<ShownRow>>;
  /** Changes columns of the one row that the key identifies, and returns it as stored. */
  updateRow(login: TenantLogin, table: TableName, change: RowChange): Promise<Looked<ShownRow>>;
  /** Checks that such a key identifies exactly one row, as `updateRow` and `deleteRow` would. Changes nothing. */
  findRow(login: TenantLogin, table: TableName, key: JsonObject): Promise<Looked<null>>;
  /** Deletes the one row identified by the columns of a primary key, or of a unique key without nulls. */
  deleteRow(login: TenantLogin, table: TableName, key: JsonObject): Promise<Looked<null>>;
}

/** How to connect. Holds a secret. */
export interface TenantLogin extends ServerAddress {
  readonly spec: DatabaseSpec;
  /** How the connection is secured; null if it is not. */
  readonly tls: ServerTls | null;
  /** Another database of the same instance, such as a restored one. Defaults to the project's own. */
  readonly database?: string;
}

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

export type JsonObject = Readonly<Record<string, unknown>>;

export interface Connections {
  readonly connections: Result<"data.connections">["connections"];
  /** How many connections the project's role may have at once. */
  readonly limit: number;
  readonly more: boolean;
}

export type Extension = Result<"data.extensions">["extensions"][number];

export interface RowChange {
  readonly key: JsonObject;
  readonly values: JsonObject;
  /** The row's version when it was read: the row is changed only if it still has it. */
  readonly version?: string | undefined;
}

/** Selects a page of a list. `q` is literal text, matched without regard to case. */
interface PageQuery {
  readonly limit: number;
  readonly offset: number;
  readonly dir: "asc" | "desc";
  readonly q?: string | undefined;
}

export interface TablesQuery extends PageQuery {
  readonly sort: "schema" | "name" | "kind" | "estimated_rows" | "size_bytes";
}

export interface RowsQuery extends PageQuery {
  /** A column to sort by. Defaults to the primary key, else to storage order. */
  readonly sort?: string | undefined;
}

export type TableKind = Result<"data.rows">["kind"];

export interface TablesPage {
  readonly tables: readonly Result<"data.tables">["tables"][number][];
  readonly total: number;
}

export type ShownColumn = Omit<Result<"data.rows">["columns"][number], "primary_key">;

/** Values by column: booleans, small integers and JSON as JSON values, everything else as PostgreSQL's exact text. */
export interface ShownRow {
  readonly row: JsonObject;
  /** The columns whose text was cut at 4 KiB. */
  readonly cut: readonly string[];
}

export interface RowsPage {
  readonly kind: TableKind;
  readonly columns: readonly ShownColumn[];
  readonly primary_key: readonly string[] | null;
  /** Every set of columns that identifies exactly one row; the primary key first. */
  readonly keys: readonly (readonly string[])[];
  readonly rows: readonly ShownRow[];
  /** The version of each row; null where the relation's rows have none. */
  readonly versions: readonly (string | null)[];
  /** More rows follow. A page may hold fewer rows than requested when they are very large. */
  readonly more: boolean;
  /** The number of rows that match `q`; null when unknown. */
  readonly total: number | null;
  readonly estimated: boolean;
}

/** Rows as lists, because a statement may give two columns the same name. */
export interface QueryResult {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
  /** Cells whose text was cut at 4 KiB. */
  readonly cut: readonly { readonly row: number; readonly columns: readonly number[] }[];
  /** The result was cut at 500 rows or 2 MiB. */
  readonly more: boolean;
}

export type Looked<T> = { readonly outcome: "done"; readonly found: T } | Unable;

/** Why there is no result. Texts are for users and contain no values, no SQL and, except for names, no text that the database's owner wrote. */
export type Unable =
  | { readonly outcome: "missing" }
  /** `field` is the invalid part of the request: `sort`, `values.age`, `key`. */
  | { readonly outcome: "invalid"; readonly field: string; readonly problem: string }
  | { readonly outcome: "conflict"; readonly problem: string; readonly hint?: string }
  | { readonly outcome: "timeout" }
  /** A retry may succeed. */
  | { readonly outcome: "unavailable"; readonly problem: string };
