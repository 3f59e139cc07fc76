import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { runFolder } from "../../kit/run-folder.ts";
import { unixSocketOf, type ServerAddress } from "../../kit/server-address.ts";
import { carryServer, connectServer, type ServerTls } from "../../kit/server-tls.ts";

const port = 5432;

export interface SocketPlace {
  /** The folder to which the short folder of the socket belongs, see `runFolder`. */
  readonly dir: string;
  readonly runBase?: string | undefined;
  readonly server: { readonly tls: ServerTls | null };
}

/**
 * Forwards a Unix socket on this machine to the server, for client programs: they read data that projects created and therefore have no
 * network. Each connection goes to the current primary. A server that already listens on a Unix socket is used directly.
 */
export function createServerSocket(
  place: SocketPlace,
  find: () => Promise<ServerAddress>,
): () => Promise<ServerAddress> {
  let opening: Promise<ServerAddress> | undefined;
  return async () => {
    const at = await find();
    if (unixSocketOf(at) !== null) return at;
    opening ??= open(place, find).catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
}

async function open(
  { dir, runBase, server: { tls } }: SocketPlace,
  find: () => Promise<ServerAddress>,
): Promise<ServerAddress> {
  const host = join(runFolder(dir, runBase), "server");
  const socket = unixSocketOf({ host, port }) as string;
  mkdirSync(host, { recursive: true, mode: 0o711 });
  // Removes a socket that an earlier process left.
  rmSync(socket, { force: true });
  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.on("error", () => client.destroy());
    find()
      .then((at) => connectServer(at, tls))
      .then((upstream) => carryServer(client, upstream))
      .catch(() => client.destroy());
  });
  server.listen(socket);
  await once(server, "listening");
  // Client programs run as projects' users and authenticate with passwords.
  chmodSync(socket, 0o777);
  server.unref();
  return { host, port };
}
