import type { IncomingHttpHeaders, IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { randomUUID } from "node:crypto";
import { WebSocketServer, type WebSocket } from "ws";
import { routes } from "../contract/routes.ts";
import { bearerProtocol, tunnelProtocol, type Row } from "../contract/table.ts";
import { Refused } from "../features/context.ts";
import { socketStream } from "../kit/socket-stream.ts";
import { answerTo } from "./errors.ts";
import type { Answer, PipelineOptions } from "./exchange.ts";
import type { AddressOf } from "./client-address.ts";
import type { Forward } from "./forward.ts";
import type { CheckHead } from "./head-check.ts";
import { runPipeline } from "./pipeline.ts";

export interface TunnelLimits {
  /** How often the client must answer a ping. */
  readonly heartbeatMs: number;
  /** How long a tunnel may be idle. */
  readonly idleMs: number;
}

export const tunnelLimits: TunnelLimits = { heartbeatMs: 15_000, idleMs: 30 * 60_000 };

/** Adds WebSockets to the control port for rows with `upgrades`. An upgrade passes the same pipeline; a refusal is an HTTP response. */
export function addTunnels(server: Server, options: PipelineOptions, checks: HeadChecks, limits: TunnelLimits): void {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: 1024 * 1024,
    perMessageDeflate: false,
    handleProtocols: (offered) => (offered.has(tunnelProtocol) ? tunnelProtocol : false),
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => {});
    if (checks.forward?.wants(request))
      return void forward(checks, request, { socket, head }).catch((error: unknown) => refuse(socket, error));
    admit(options, request, { socket, checks }).then(
      (tunnel) => sockets.handleUpgrade(request, socket, head, (open) => void carry(open, tunnel, { options, limits })),
      (error: unknown) => refuse(socket, error),
    );
  });
}

const upgradable = (routes as readonly Row[])
  .filter(({ upgrades }) => upgrades)
  .map((row) => ({ row, pattern: new RegExp(`^${row.path.replace(/:(\w+)/g, "(?<$1>[^/]+)")}$`) }));

/** What the server needs to handle an upgrade request before the pipeline. */
export interface HeadChecks {
  readonly checkHead: CheckHead;
  /** Forwards requests that this process can't serve. */
  readonly forward: Forward | null;
  readonly addressOf: AddressOf;
}

async function forward(
  checks: HeadChecks,
  request: IncomingMessage,
  { socket, head }: { readonly socket: Duplex; readonly head: Buffer },
): Promise<void> {
  const fault = checks.checkHead(request);
  if (fault !== undefined) throw new Refused("invalid_request", { error: fault });
  await checks.forward?.upgrade(request, socket, head);
}

type OpenTunnel = NonNullable<Answer["tunnel"]>;

async function admit(
  options: PipelineOptions,
  request: IncomingMessage,
  { socket, checks }: { readonly socket: Duplex; readonly checks: HeadChecks },
): Promise<OpenTunnel> {
  const { url = "/", headers } = request;
  const fault = checks.checkHead(request);
  if (fault !== undefined) throw new Refused("invalid_request", { error: fault });
  const { pathname, searchParams } = new URL(url, "http://control");
  const found = upgradable.flatMap(({ row, pattern }) => {
    const groups = pattern.exec(pathname)?.groups;
    return groups === undefined ? [] : [{ row, params: decoded(groups) }];
  })[0];
  if (found === undefined) throw new Refused("not_found", { error: "This path has no WebSocket." });
  const address = await checks.addressOf(headers, request.socket.remoteAddress ?? "");
  const done = await runPipeline(options, found.row, {
    ...{ params: found.params, query: Object.fromEntries(searchParams), body: undefined },
    token: tokenOf(headers),
    ...{ lastEventId: undefined, idempotencyKey: undefined, address, requestId: randomUUID() },
    isUpgrade: true,
    gone: () => goneSignal(socket),
    whenOver: (call) => void (socket.destroyed ? call() : socket.once("close", call)),
    setHeaders: () => {},
  });
  if (done.tunnel === undefined)
    throw new Refused("invalid_request", { error: "This resource can't be opened as a tunnel." });
  return done.tunnel;
}

/** Returns the token from the header that programs send, or else from the subprotocols that a browser's WebSocket offers. */
function tokenOf({
  authorization = "",
  "sec-websocket-protocol": offered = "",
}: IncomingHttpHeaders): string | undefined {
  const given = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  if (given !== undefined) return given;
  const protocols = offered.split(",").map((each) => each.trim());
  return protocols.find((each) => each.startsWith(bearerProtocol))?.slice(bearerProtocol.length);
}

function decoded(groups: Readonly<Record<string, string>>): Record<string, string> {
  try {
    return Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, decodeURIComponent(text)]));
  } catch {
    throw new Refused("not_found");
  }
}

function goneSignal(socket: Duplex): AbortSignal {
  const gone = new AbortController();
  const leave = () => gone.abort(new Error("the client has left"));
  if (socket.destroyed) leave();
  else socket.once("close", leave);
  return gone.signal;
}

function refuse(socket: Duplex, error: unknown): void {
  const { status, headers, body } = answerTo(error);
  const text = JSON.stringify(body);
  const fields = { ...headers, "content-type": "application/json; charset=utf-8", "cache-control": "no-store" };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`);
  socket.end(
    [
      `HTTP/1.1 ${status} Refused`,
      ...lines,
      `content-length: ${Buffer.byteLength(text)}`,
      "connection: close",
      "",
      text,
    ].join("\r\n"),
  );
}

// RFC 6455 limits a close reason to 123 bytes, and leaves codes from 4000 on to applications.
const reasonBytes = 123;
const refusedCode = 4000;
const cutAfterMs = 1000;

/** Runs a tunnel until it closes, always with a reason. */
async function carry(
  socket: WebSocket,
  { work, signal, end }: OpenTunnel,
  { options, limits }: { readonly options: PipelineOptions; readonly limits: TunnelLimits },
): Promise<void> {
  const stream = socketStream(socket as never);
  const watch = watchLife(socket, limits);
  const over = AbortSignal.any([signal, watch.signal]);
  const cut = new Promise<never>((_, reject) => {
    const stop = () => reject(over.reason as Error);
    if (over.aborted) stop();
    else over.addEventListener("abort", stop, { once: true });
  });
  cut.catch(() => {});
  try {
    await Promise.race([work({ ...stream, signal: over }), cut]);
    socket.close(1000, "done");
  } catch (error) {
    const { status, body } = answerTo(error);
    if (status === 500 && !over.aborted) options.log.error({ error: String(error) }, "a tunnel broke");
    socket.close(
      refusedCode,
      Buffer.from(over.aborted && status === 500 ? "closed" : body.error).subarray(0, reasonBytes),
    );
  } finally {
    watch.end();
    end();
    setTimeout(() => socket.terminate(), cutAfterMs).unref();
  }
}

/** Creates a signal that aborts when the client stops answering pings, or when the tunnel is idle for too long. */
function watchLife(socket: WebSocket, { heartbeatMs, idleMs }: TunnelLimits) {
  const life = new AbortController();
  let answered = true;
  let busyAt = Date.now();
  let queued = 0;
  socket.on("pong", () => void (answered = true));
  socket.on("message", () => void (busyAt = Date.now()));
  const beat = () => {
    // More bytes than a ping were written since the last beat, so the tunnel is in use.
    const written = (socket as unknown as { _socket?: { bytesWritten: number } })._socket?.bytesWritten ?? 0;
    if (written - queued > pingBytes) busyAt = Date.now();
    queued = written;
    if (!answered && socket.bufferedAmount === 0)
      life.abort(new Refused("unavailable", { error: "The tunnel's client no longer answers." }));
    else if (Date.now() - busyAt > idleMs)
      life.abort(new Refused("unavailable", { error: "The tunnel was idle for too long; open it again." }));
    answered = false;
    socket.ping();
  };
  const timer = setInterval(beat, heartbeatMs);
  return { signal: life.signal, end: () => clearInterval(timer) };
}

const pingBytes = 16;
