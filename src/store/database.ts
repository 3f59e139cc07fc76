import { Kysely, PostgresDialect, type PostgresPoolClient, type Selectable, type Transaction } from "kysely";
import pg from "pg";
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../kit/log.ts";
import { outageOf } from "../kit/outage.ts";
import type { Tables } from "./tables.ts";

export type Db = Kysely<Tables>;
export type Tx = Transaction<Tables>;

/** Columns of a table as a query returns them. */
export type Columns<Table extends keyof Tables, Name extends keyof Selectable<Tables[Table]>> = Readonly<
  Pick<Selectable<Tables[Table]>, Name>
>;

export type Database = ReturnType<typeof openDatabase>;

/** Opens the control plane's database. Timestamps are RFC 3339 text in UTC, bigints numbers. A lost connection is replaced. */
export function openDatabase(options: { readonly connection: pg.PoolConfig; readonly log: Log }) {
  const pool = new pg.Pool({ ...pooling, ...options.connection, ...session });
  // The pool handles errors of idle connections only; an unhandled error on a connection in use would crash the process. Its query fails anyway.
  pool.on("connect", (client) => client.on("error", () => {}));
  pool.on("error", (error) => {
    // A server that stops right after the pool closed still ends its sessions.
    if (!pool.ending) options.log.warn({ error: error.message }, "lost an idle connection to the database");
  });
  return { db: fromPool(pool), pool, close: () => pool.end() };
}

// On an overloaded machine a new connection takes seconds, so some are kept, and a caller waits longer for one than for any statement.
const pooling = { max: 10, min: 4, idleTimeoutMillis: 60_000, connectionTimeoutMillis: 10_000 } as const;
const reconnectMs = 250;
const collisionMs = 50;

/** Wraps a pool in a typed view. Closing the view closes the pool. */
function fromPool(pool: pg.Pool): Db {
  const names = new Map<string, string>();
  const named = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  const connect = async () => {
    // No statement has run yet, so one failure of the connection is repeated before a caller learns of it.
    const client = await pool.connect().catch(async (error: unknown) => {
      if (outageOf(error) !== "away") throw error;
      await sleep(reconnectMs);
      return pool.connect();
    });
    const known = named.get(client) ?? withNamedStatements(client, names);
    named.set(client, known);
    return known;
  };
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool: { options: pool.options, connect, end: () => pool.end() } }),
  });
  const begin = db.transaction.bind(db);
  db.transaction = () => {
    const transaction = begin();
    const execute = transaction.execute.bind(transaction);
    transaction.execute = (work) =>
      execute(work).catch(async (error: unknown) => {
        if (!isCollision(error)) throw error;
        // Otherwise it could take the locks again before the one that waits for them does.
        await sleep(collisionMs);
        return execute(work);
      });
    return transaction;
  };
  return db;
}

/** Returns whether PostgreSQL rolled a transaction back in favour of another one. Such a transaction is repeated once. */
export function isCollision(error: unknown): boolean {
  return ["40001", "40P01"].includes((error as { code?: string } | null)?.code ?? "");
}

// Measured: a prepared statement costs a fifth less. The limit keeps generated statements (lists of different lengths) from filling the
// server's memory.
const mostNames = 500;

function withNamedStatements(client: pg.PoolClient, names: Map<string, string>): PostgresPoolClient {
  const nameOf = (text: string) => {
    const known = names.get(text);
    if (known !== undefined || names.size >= mostNames) return known;
    names.set(text, `q${names.size + 1}`);
    return names.get(text);
  };
  const query = (text: string, values: readonly unknown[] = []): Promise<pg.QueryResult> => {
    const name = values.length === 0 ? undefined : nameOf(text);
    return client.query(name === undefined ? { text, values: [...values] } : { name, text, values: [...values] });
  };
  const release = (discard?: boolean) => client.release(discard);
  // Kysely's type has an overload for cursors, which is not used here.
  return { query, release } as unknown as PostgresPoolClient;
}

const oids = { int8: 20, timestamptz: 1184 } as const;

type Parser = (text: string) => unknown;
const parsers = new Map<number, Parser>([
  [oids.timestamptz, timestampText],
  [oids.int8, safeInteger],
]);

const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: "text" | "binary"): Parser => {
    const own = format === "binary" ? undefined : parsers.get(oid);
    return own ?? (pg.types.getTypeParser(oid, format ?? "text") as Parser);
  }) as typeof pg.types.getTypeParser,
};

/** Settings of every connection: UTC, and Berth's own type parsers. */
const session = {
  types,
  // Our transactions wait only for the database, so one that idles is broken and must not hold its locks. JIT is off: from 300 projects on,
  // an operator's server took over a second to compile a statement that runs for 15 ms.
  options: "-c TimeZone=UTC -c jit=off -c lock_timeout=20s -c idle_in_transaction_session_timeout=60s",
} as const;

/** Converts `2026-01-02 03:04:05.678901+00` to `2026-01-02T03:04:05.678Z`, without creating a Date for the usual form. */
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
