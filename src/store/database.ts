import { Kysely, PostgresDialect, type Transaction } from "kysely";
import pg from "pg";
import type { Log } from "../kit/log.ts";
import type { Tables } from "./tables.ts";

export type Db = Kysely<Tables>;
export type Tx = Transaction<Tables>;

export interface Database {
  readonly db: Db;
  readonly pool: pg.Pool;
  close(): Promise<void>;
}

/**
 * Opens the control plane's database. Rows come out as they go over the wire: timestamps as RFC 3339 text in UTC with
 * milliseconds, bigints as numbers. A lost connection is logged and replaced; only the query under way fails.
 */
export function openDatabase(options: { readonly connection: pg.PoolConfig; readonly log: Log }): Database {
  const pool = new pg.Pool({ max: 10, connectionTimeoutMillis: 5000, ...options.connection, ...session });
  pool.on("error", (error) => options.log.warn({ error: error.message }, "lost an idle connection to the database"));
  return { db: fromPool(pool), pool, close: () => pool.end() };
}

/** The typed view of a pool. Closing it closes the pool. */
function fromPool(pool: pg.Pool): Db {
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}

const oids = { int8: 20, timestamptz: 1184 } as const;

const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary") => {
    if (format === "binary") return pg.types.getTypeParser(oid, "binary");
    if (oid === oids.timestamptz) return timestampText;
    if (oid === oids.int8) return safeInteger;
    return pg.types.getTypeParser(oid, "text");
  }) as typeof pg.types.getTypeParser,
};

/** What every connection of ours has in common: UTC, and our own reading of types. */
const session = { types, options: "-c TimeZone=UTC" } as const;

/** `2026-01-02 03:04:05.678901+00` to `2026-01-02T03:04:05.678Z`, without the cost of a Date for the usual form. */
export function timestampText(text: string): string {
  const found = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?\+00$/.exec(text);
  if (!found) return new Date(text).toISOString();
  return `${found[1]}T${found[2]}.${(found[3] ?? "").padEnd(3, "0").slice(0, 3)}Z`;
}

function safeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new Error("a bigint of the database is too large for a number");
  return value;
}
