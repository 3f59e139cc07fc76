import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { withConnection, type ServerConnection } from "../../postgres/connection.ts";
import { instanceFiles } from "./instance-files.ts";
import { socketOnlyPort, superuser } from "./settings.ts";

export interface ServerAddress {
  readonly dir: string;
  readonly socketDir: string;
  readonly port: number | null;
}

/** Returns the superuser's login: over the Unix socket, with the secret in the instance's folder. Throws before the first `ensure`. */
export function superuserConnection(address: ServerAddress, database = "postgres"): ServerConnection {
  const password = readFileSync(instanceFiles(address.dir).secret, "utf8");
  return { host: address.socketDir, port: address.port ?? socketOnlyPort, user: superuser, password, database };
}

export function socketFile(address: ServerAddress): string {
  return join(address.socketDir, `.s.PGSQL.${address.port ?? socketOnlyPort}`);
}

/** Probes the server: `ready` if its superuser can log in, `starting` if it answers that it is starting, `down` without an answer. */
export async function askServer(address: ServerAddress): Promise<"ready" | "starting" | "down"> {
  if (!existsSync(socketFile(address))) return "down";
  try {
    await withConnection(superuserConnection(address), (client) => client.query("select 1"));
    return "ready";
  } catch (error) {
    return meaningOf(error as Error & { code?: string });
  }
}

// 57P03: starting up, recovering or shutting down. 53300: every connection is in use, so the server is running.
function meaningOf(error: Error & { code?: string }): "ready" | "starting" | "down" {
  if (error.code === "57P03") return "starting";
  if (error.code === "53300") return "ready";
  if (error.code === "28P01" || error.code === "28000") throw error;
  return "down";
}
