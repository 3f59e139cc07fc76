import { once } from "node:events";
import { connect, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { unixSocketOf, type ServerAddress } from "./server-address.ts";

/** How connections to a PostgreSQL server are secured, with libpq's terms. */
export interface ServerTls {
  /** `require`: encrypted, not verified; `verify-ca`: the certificate must come from these authorities; `verify-full`: and match its name. */
  readonly mode: "require" | "verify-ca" | "verify-full";
  /** The certificate authorities (PEM); null: the public ones. */
  readonly ca: string | null;
}

/** Returns the options of a TLS connection to the server at `host`; undefined for a Unix socket, on which TLS is not used, as in libpq. */
export function tlsOptions(
  { host }: Pick<ServerAddress, "host">,
  tls: ServerTls | null,
): ConnectionOptions | undefined {
  if (tls === null || host.startsWith("/")) return undefined;
  return {
    host,
    rejectUnauthorized: tls.mode !== "require",
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(tls.ca === null ? {} : { ca: tls.ca }),
    ...(tls.mode === "verify-full" ? {} : { checkServerIdentity: () => undefined }),
  };
}

// The length and code of PostgreSQL's encryption requests, which precede a session's first message.
const tlsRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const gssRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30]);
const connectMs = 30_000;

/** Opens a connection to the server on which a session can start. Rejects when the server offers no TLS, or its certificate is not valid. */
export async function connectServer(address: ServerAddress, tls: ServerTls | null): Promise<Duplex> {
  const path = unixSocketOf(address);
  const socket = path === null ? connect({ ...address }) : connect(path);
  const options = tlsOptions(address, tls);
  try {
    const signal = AbortSignal.timeout(connectMs);
    await once(socket, "connect", { signal });
    if (options === undefined) return socket;
    const secured = connectTls({ ...options, socket: await requestTls(socket, signal) });
    await once(secured, "secureConnect", { signal });
    return secured;
  } catch (error) {
    socket.on("error", () => {}).destroy();
    throw error;
  }
}

async function requestTls(socket: Socket, signal: AbortSignal): Promise<Socket> {
  socket.write(tlsRequest);
  await once(socket, "readable", { signal });
  const answer = (socket.read(1) as Buffer | null)?.toString();
  if (answer !== "S") throw new Error("the server offers no TLS");
  return socket;
}

/** Relays a client's plain connection to a server connection whose TLS ends in this process. Resolves when both sides have ended. */
export async function carryServer(client: Duplex, server: Duplex, signal?: AbortSignal): Promise<void> {
  const options = signal === undefined ? {} : { signal };
  // Either side may end first; that ends both directions.
  await Promise.allSettled([
    pipeline(withoutTlsRequests(client), server, options),
    pipeline(withoutChannelBinding(server), client, options),
  ]);
  server.destroy();
}

/** Refuses the client's requests to encrypt the connection, and passes on everything else. */
async function* withoutTlsRequests(client: Duplex): AsyncGenerator<Buffer> {
  let start: Buffer | null = Buffer.alloc(0);
  for await (const chunk of client as AsyncIterable<Buffer>) {
    if (start === null) {
      yield chunk;
      continue;
    }
    start = Buffer.concat([start, chunk]);
    while (isRequest(start)) {
      start = start.subarray(tlsRequest.length);
      client.write("N");
    }
    if (start.length < tlsRequest.length) continue;
    yield start;
    start = null;
  }
}

const isRequest = (bytes: Buffer): boolean => {
  const head = bytes.subarray(0, tlsRequest.length);
  return head.equals(tlsRequest) || head.equals(gssRequest);
};

const bound = Buffer.from("SCRAM-SHA-256-PLUS\0");
const saslHeadBytes = 9;

/**
 * Removes SCRAM with channel binding from the mechanisms that the server offers: over a connection without TLS, libpq refuses a server that
 * offers it. The offer is in the server's first message: `R`, its length, 10, the names of mechanisms.
 */
async function* withoutChannelBinding(server: Duplex): AsyncGenerator<Buffer> {
  let start: Buffer | null = Buffer.alloc(0);
  for await (const chunk of server as AsyncIterable<Buffer>) {
    if (start === null) {
      yield chunk;
      continue;
    }
    start = Buffer.concat([start, chunk]);
    if (start.length < saslHeadBytes || start.length < 1 + start.readUInt32BE(1)) continue;
    const offersBound = start[0] === "R".charCodeAt(0) && start.readUInt32BE(5) === 10;
    const at = offersBound ? start.subarray(0, 1 + start.readUInt32BE(1)).indexOf(bound) : -1;
    if (at === -1) yield start;
    else {
      const rest = Buffer.concat([start.subarray(0, at), start.subarray(at + bound.length)]);
      rest.writeUInt32BE(start.readUInt32BE(1) - bound.length, 1);
      yield rest;
    }
    start = null;
  }
  if (start !== null && start.length > 0) yield start;
}
