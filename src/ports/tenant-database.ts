import type { ServerAddress } from "../kit/server-address.ts";
import type { DatabaseSpec } from "./postgres-host.ts";

/**
 * Looks into a project's database and changes single rows there, for people who browse it. Logs in as the project's own role and
 * never as another, with one connection a call. What the project's owner has made (functions, views, triggers, policies) may run
 * and may be hostile: it cannot write while reading, gets 5 s a statement and 6 s a call, and then the session is ended from
 * outside. Names come from the catalogue alone, values are bound. Everything that can be the user's or the owner's doing is an
 * outcome; only faults of the platform are thrown.
 */
export interface TenantDatabase {
  /** Tables, views and their like, without PostgreSQL's own schemas. */
  listTables(login: TenantLogin, query: TablesQuery): Promise<Looked<TablesPage>>;
  /** A page of rows. Two calls in a row give the same order as long as the table has a key or is sorted. */
  readRows(login: TenantLogin, table: TableName, query: RowsQuery): Promise<Looked<RowsPage>>;
  /**
   * Runs one statement that reads, and nothing else: in a read-only transaction that is never committed. The login should be one
   * that cannot write anyway (`readerLogin`).
   */
  query(login: TenantLogin, statement: string): Promise<Looked<QueryResult>>;
  /** Adds one row of column names and JSON values and returns it as it was stored. */
  insertRow(login: TenantLogin, table: TableName, values: JsonObject): Promise<Looked<ShownRow>>;
  /** Whether such a key names exactly one row, as `deleteRow` would find it. Changes nothing. */
  findRow(login: TenantLogin, table: TableName, key: JsonObject): Promise<Looked<null>>;
  /** Deletes the one row that the columns of a primary key, or of a unique key without nulls, name. */
  deleteRow(login: TenantLogin, table: TableName, key: JsonObject): Promise<Looked<null>>;
}

/** The way in. Holds a secret. */
export interface TenantLogin extends ServerAddress {
  readonly spec: DatabaseSpec;
  /** Another database of the same instance, such as a restored one; a project's own if left out. */
  readonly database?: string;
}

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** What is asked of a list: `q` is a literal piece of text, whatever its case. */
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
  /** A column. Without one the primary key orders, else the order of storage. */
  readonly sort?: string | undefined;
}

export type TableKind = "table" | "partitioned_table" | "partition" | "view" | "materialized_view" | "foreign_table";

export interface TablesPage {
  readonly tables: readonly {
    readonly schema: string;
    readonly name: string;
    readonly kind: TableKind;
    /** Null for what stores no rows itself. */
    readonly estimated_rows: number | null;
    /** With indexes and large values; null for what stores nothing. */
    readonly size_bytes: number | null;
  }[];
  readonly total: number;
}

export interface ShownColumn {
  readonly name: string;
  /** As PostgreSQL spells it, with the schema of what is not its own. */
  readonly type: string;
  readonly nullable: boolean;
  /** The expression; null when there is none. */
  readonly default: string | null;
  readonly generated: "stored" | "virtual" | null;
  readonly identity: "always" | "by_default" | null;
}

/** Values by column: booleans, small integers and JSON as such, everything else as PostgreSQL's exact text. */
export interface ShownRow {
  readonly row: JsonObject;
  /** The columns whose text was cut at 4 KiB. */
  readonly cut: readonly string[];
}

export interface RowsPage {
  readonly kind: TableKind;
  readonly columns: readonly ShownColumn[];
  readonly primary_key: readonly string[] | null;
  /** Every set of columns that names exactly one row; the primary key first. */
  readonly keys: readonly (readonly string[])[];
  readonly rows: readonly ShownRow[];
  /** There are rows behind these. Fewer than asked for may come when they are very large. */
  readonly more: boolean;
  /** All rows that fit `q`; null when nothing is known. */
  readonly total: number | null;
  readonly estimated: boolean;
}

/** Rows as lists, because a statement may give two columns the same name. */
export interface QueryResult {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: readonly (readonly unknown[])[];
  /** Cells whose text was cut at 4 KiB. */
  readonly cut: readonly { readonly row: number; readonly columns: readonly number[] }[];
  /** There were more rows than are shown: 500, or 2 MiB of them. */
  readonly more: boolean;
}

export type Looked<T> = { readonly outcome: "done"; readonly found: T } | Unable;

/** Why there is no answer. Texts are for users and hold no values, no SQL, and no text that the database's owner wrote but names. */
export type Unable =
  | { readonly outcome: "missing" }
  /** `field` is the part of the request that is wrong: `sort`, `values.age`, `key`. */
  | { readonly outcome: "invalid"; readonly field: string; readonly problem: string }
  | { readonly outcome: "conflict"; readonly problem: string; readonly hint?: string }
  | { readonly outcome: "timeout" }
  /** It may work a moment later. */
  | { readonly outcome: "unavailable"; readonly problem: string };
