import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";

export interface RelayTarget {
  /** The address that was resolved and allowed. */
  readonly address: string;
  readonly port: number;
  /** Clients use HTTP's CONNECT, as curl does with a proxy; whatever host they name, they reach this address. */
  readonly asProxy: boolean;
  readonly maxBytes: number;
  /** Allowance for bytes besides the pack: handshakes, lists of refs, headers. */
  readonly slackBytes: number;
}

export type Relay = Awaited<ReturnType<typeof openRelay>>;

const connectMs = 20_000;
const mostConnections = 4;

/** Opens the only way out for a process without a network: a socket whose connections all lead to one address. */
export async function openRelay(target: RelayTarget, socketPath: string | null) {
  const sockets = new Set<Duplex>();
  let problem: string | null = null;
  let bytes = 0;
  const joinTarget = (client: Duplex, greeting = "") => {
    const upstream = connect({ host: target.address, port: target.port });
    // Registered before the pipe, so that bytes over the limit never reach the client.
    upstream.on("data", (part: Buffer) => {
      bytes += part.length;
      if (bytes <= target.maxBytes + target.slackBytes) return;
      problem = tooMuch(target.maxBytes);
      for (const socket of sockets) socket.destroy();
    });
    upstream.setTimeout(connectMs, () => upstream.destroy(new Error("ETIMEDOUT")));
    upstream.once("connect", () => {
      upstream.setTimeout(0);
      if (greeting !== "") client.write(greeting);
      client.pipe(upstream).pipe(client);
    });
    upstream.on("error", (error: NodeJS.ErrnoException) => (problem ??= reasonOf(error)));
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket
        .on("error", () => {})
        .once("close", () => {
          sockets.delete(socket);
          other.destroy();
        });
    }
  };
  const server: Server = target.asProxy
    ? createHttpServer().on("connect", (_, client) => joinTarget(client, "HTTP/1.1 200 OK\r\n\r\n"))
    : createServer((client: Socket) => joinTarget(client));
  server.maxConnections = mostConnections;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    if (socketPath === null) server.listen(0, "127.0.0.1", resolve);
    else server.listen(socketPath, resolve);
  });
  return {
    /** The address for clients: the path of a Unix socket, or a port of 127.0.0.1. */
    place: socketPath ?? (server.address() as { port: number }).port,
    /** Why the destination could not be reached or was cut off; null without a failure. */
    problem: () => problem,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === "ECONNREFUSED") return "The repository's host refused the connection.";
  if (code === "ETIMEDOUT" || message === "ETIMEDOUT") return "The repository's host did not answer in time.";
  return `The connection to the repository's host broke${code === undefined ? "" : ` (${code})`}.`;
}

export function tooMuch(maxBytes: number): string {
  return `The repository sends more than ${Math.floor(maxBytes / 1024 / 1024)} MiB, the limit for a fetch.`;
}
