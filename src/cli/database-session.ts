import { createServer, type Server, type Socket } from "node:net";
import { once } from "node:events";
import { pipeline } from "node:stream/promises";
import type { CliContext } from "./context.ts";
import { usageError } from "./failures.ts";
import { openTunnel, type OpenTunnel } from "./open-tunnel.ts";

/** Local access to a project's database while a command runs. Holds a secret. */
export interface DatabaseSession {
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly tunnel: OpenTunnel;
}

/** Opens the tunnel, listens on 127.0.0.1, and closes both when `work` has ended. */
export async function inDatabaseSession<T>(
  ctx: CliContext,
  given: { readonly slug: string; readonly id: string; readonly port?: number },
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  const path = `/v1/projects/${given.slug}/database/tunnels/${given.id}`;
  const tunnel = await openTunnel(ctx, path);
  const server = createServer((socket) => void carry(ctx, `${path}?connection=true`, socket));
  try {
    const [ready] = await Promise.all([tunnel.next("ready"), listen(server, given.port ?? 0)]);
    const { port } = server.address() as { port: number };
    const { user, password, database } = ready;
    return await work({ port, user: String(user), password: String(password), database: String(database), tunnel });
  } finally {
    server.close();
    tunnel.close();
    await tunnel.ended.catch(() => {});
  }
}

/** Returns the variables that libpq's programs read. They hold the password, so pass them only in a child's environment. */
export function sessionEnvironment({ port, user, password, database }: DatabaseSession): Record<string, string> {
  const server = { PGHOST: "127.0.0.1", PGPORT: String(port), PGSSLMODE: "disable" };
  return { ...server, PGUSER: user, PGPASSWORD: password, PGDATABASE: database, PGAPPNAME: "berth" };
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    throw usageError(`Can't listen on port ${port} (${error.code}).`, "Omit --port to use a free one.");
  });
}

/** Each connection has its own WebSocket. */
async function carry(ctx: CliContext, path: string, socket: Socket): Promise<void> {
  socket.on("error", () => {});
  try {
    const { bytes, close } = await openTunnel(ctx, path);
    await Promise.allSettled([pipeline(socket, bytes), pipeline(bytes, socket)]);
    close();
  } finally {
    socket.destroy();
  }
}
