import pg from "pg";
import { tlsOptions, type ServerTls } from "../kit/server-tls.ts";

/** How to log in, as options of node-postgres. Holds a secret. */
export interface ServerConnection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  /** Absent or null: the connection is not secured. */
  readonly tls?: ServerTls | null;
}

// An abandoned attempt still costs the server: with five seconds on an overloaded machine, eight of them at each of ten servers (all in
// PostgreSQL's "authentication") made up most of its load.
const connectTimeoutMs = 30_000;
const queryTimeoutMs = 60_000;

// These override what a role's owner set for it: names without a schema are PostgreSQL's own, and no library is preloaded.
const sessionOptions = "-c search_path=pg_catalog -c local_preload_libraries= -c role=none";

export async function withConnection<T>(
  { tls = null, ...connection }: ServerConnection,
  work: (client: pg.Client) => Promise<T>,
  { connectMs = connectTimeoutMs, queryMs = queryTimeoutMs }: { connectMs?: number; queryMs?: number } = {},
): Promise<T> {
  const client = new pg.Client({
    ...connection,
    ssl: tlsOptions(connection, tls) ?? false,
    options: sessionOptions,
    connectionTimeoutMillis: connectMs,
    query_timeout: queryMs,
  });
  // If the server stops, the next query fails; without this listener the error would end the process.
  client.on("error", () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
