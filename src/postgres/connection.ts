import pg from "pg";

/** How to log in, in the words of node-postgres. Holds a secret. */
export interface ServerConnection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

// An attempt that is given up still costs the server: on an overloaded machine, with five seconds, eight of them at each of ten servers
// (all in PostgreSQL's "authentication") were most of its load.
const connectTimeoutMs = 30_000;
const queryTimeoutMs = 60_000;

// These win over what the owner of a role set for it: names without a schema are PostgreSQL's own, and no library is loaded.
const sessionOptions = "-c search_path=pg_catalog -c local_preload_libraries= -c role=none";

/** Logs in, does `work` and leaves. */
export async function withConnection<T>(
  connection: ServerConnection,
  work: (client: pg.Client) => Promise<T>,
  { connectMs = connectTimeoutMs, queryMs = queryTimeoutMs }: { connectMs?: number; queryMs?: number } = {},
): Promise<T> {
  const client = new pg.Client({
    ...connection,
    options: sessionOptions,
    connectionTimeoutMillis: connectMs,
    query_timeout: queryMs,
  });
  // A server that ends under an open connection is an error of the next query, not of this process.
  client.on("error", () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
