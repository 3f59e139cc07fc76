import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { instanceFiles } from "./instance-files.ts";
import { socketOnlyPort, superuser } from "./settings.ts";

/** How to log in, in the words of node-postgres. Holds a secret. */
export interface ServerConnection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/** Where an instance is and how its superuser gets in. */
export interface ServerAddress {
  readonly dir: string;
  readonly socketDir: string;
  readonly port: number | null;
}

// An attempt that is given up still costs the server: on an overloaded machine, with five seconds, eight of them at each of ten servers
// (all in PostgreSQL's "authentication") were most of its load.
const connectTimeoutMs = 30_000;
const queryTimeoutMs = 60_000;

/** The superuser's way in: over the unix socket, with the secret of the instance's folder. Throws before the first `ensure`. */
export function superuserConnection(address: ServerAddress, database = "postgres"): ServerConnection {
  const password = readFileSync(instanceFiles(address.dir).secret, "utf8");
  return { host: address.socketDir, port: address.port ?? socketOnlyPort, user: superuser, password, database };
}

/** The file a client connects to. */
export function socketFile(address: ServerAddress): string {
  return join(address.socketDir, `.s.PGSQL.${address.port ?? socketOnlyPort}`);
}

// These win over what the owner of a role set for it: names without a schema are PostgreSQL's own, and no library is loaded.
const sessionOptions = "-c search_path=pg_catalog -c local_preload_libraries= -c role=none";

/** Logs in, does `work` and leaves. */
export async function withConnection<T>(
  connection: ServerConnection,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    ...connection,
    options: sessionOptions,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs,
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

/** `ready` when the server lets its superuser in, `starting` when it says so, `down` without an answer. */
export async function askServer(address: ServerAddress): Promise<"ready" | "starting" | "down"> {
  if (!existsSync(socketFile(address))) return "down";
  try {
    await withConnection(superuserConnection(address), (client) => client.query("select 1"));
    return "ready";
  } catch (error) {
    return meaningOf(error as Error & { code?: string });
  }
}

// 57P03: starting up, recovering or shutting down. 53300: every connection is taken, so it runs.
function meaningOf(error: Error & { code?: string }): "ready" | "starting" | "down" {
  if (error.code === "57P03") return "starting";
  if (error.code === "53300") return "ready";
  if (error.code === "28P01" || error.code === "28000") throw error;
  return "down";
}
