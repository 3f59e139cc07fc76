import { Agent, request, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { Agent as TlsAgent, request as requestTls } from "node:https";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { Target } from "./edge.ts";

// Applications and clients that attack an edge, for its suite.

/** Where an edge listens, and for which protocol. */
export interface EdgeAddress {
  readonly host: string;
  readonly port: number;
  readonly over: "http" | "https";
}

function newAgent({ over }: EdgeAddress, maxSockets = Number.POSITIVE_INFINITY): Agent {
  const options = { keepAlive: true, maxSockets };
  return over === "http" ? new Agent(options) : new TlsAgent({ ...options, rejectUnauthorized: false });
}

/** Returns a request for `host` that is not sent yet. */
function begin(edge: EdgeAddress, host: string, options: RequestOptions): ClientRequest {
  const { over, ...address } = edge;
  const headers = { host, ...(options.headers as Record<string, string> | undefined) };
  const named = { ...address, servername: host, ...options, headers };
  return over === "http" ? request(named) : requestTls(named);
}

/** Starts an application that sends raw bytes: `respond` gets each connection after its first request. */
export async function startRawApp(respond: (socket: Socket, head: string) => void): Promise<RawApp> {
  const host = "127.0.0.1";
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}).on("close", () => sockets.delete(socket)));
    socket.on("data", (bytes: Buffer) => respond(socket, bytes.toString("latin1")));
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { target: { host, port: (server.address() as AddressInfo).port }, close };
}

export interface RawApp {
  readonly target: Target;
  close(): void;
}

/** Answers every request with an endless stream of one-byte chunks. */
export const startChunkFlood = (): Promise<RawApp> => startRawApp(pourChunks);

const chunks = Buffer.from("1\r\nx\r\n".repeat(10_000));

function pourChunks(socket: Socket): void {
  socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  const pour = () => {
    while (!socket.destroyed && socket.write(chunks));
  };
  socket.on("drain", pour);
  pour();
}

/** Answers every request with almost valid HTTP, cut anywhere, then sends more, falls silent, ends or resets the connection. */
export const startHostileApp = (random: Random): Promise<RawApp> =>
  startRawApp((socket) => answerHostilely(socket, random));

function answerHostilely(socket: Socket, random: Random): void {
  const bytes = Buffer.from(hostileAnswer(random), "latin1");
  const cut = random(bytes.length + 1);
  socket.write(bytes.subarray(0, cut));
  setTimeout(() => {
    socket.write(bytes.subarray(cut));
    const ending = random(4);
    if (ending === 0) socket.end();
    else if (ending === 1) socket.resetAndDestroy();
    else if (ending === 2) socket.write("garbage after the answer\r\n\r\n".repeat(1 + random(50)));
  }, random(5));
}

/** Returns a random whole number from 0 to below `limit`. */
export type Random = (limit: number) => number;

/** Mulberry32: the same seed yields the same numbers. */
export function randomFrom(seed: number): Random {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

const interim = ["", "", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n".repeat(400)];
const statusLines = [
  ...[
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200 O\x01K",
    "HTTP/1.1 404",
    "HTTP/1.0 200 OK",
    "HTTP/1.1 204 No",
    "HTTP/1.1 304 Not",
  ],
  ...["HTTP/1.1 101 Switch", "HTTP/1.1 999 ?", "HTTP/1.1 000 ?", "HTTP/2.0 200 OK", "HTTP/1.1 20", "ICY 200 OK", ""],
];
const fields = [
  ...[
    "Content-Length: 5",
    "Content-Length: 0",
    "Content-Length: 99999999",
    "Content-Length: -1",
    "Content-Length: 5, 6",
  ],
  ...[
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Connection: close",
    "Connection: X-A, keep-alive",
  ],
  ...[
    "Keep-Alive: timeout=0",
    "Trailer: X-Sum",
    "Upgrade: websocket",
    "X-A: \x01",
    "X-B: \x7f\xff",
    "X-Empty:",
    " folded",
  ],
  ...[
    "X C: 3",
    "Date: \r\n\r\nHTTP/1.1 200 OK",
    "Set-Cookie: a=b",
    `X-Long: ${"y".repeat(70_000)}`,
    "x:\r\n".repeat(3000),
  ],
];
const bodies = [
  ...[
    "",
    "hello",
    "hello, world",
    "5\r\nhello\r\n0\r\n\r\n",
    "2;a=b\r\nhi\r\n0\r\nX-Sum: 7\r\n\r\n",
    "zz\r\n",
    "5\r\nhel",
  ],
  ...["1\r\nx\r\n".repeat(5000), "FFFFFFFFFFFFFFFF\r\n", `1;${"e".repeat(40_000)}\r\na\r\n0\r\n\r\n`],
  ...["0\r\nContent-Length: 3\r\nHost: evil\r\n\r\n", `0\r\nX-T: ${"t".repeat(70_000)}\r\n\r\n`],
];
const damage = ["", "\r", "\n", "\r\n", "\0", " ", ":", "x", "9", "ff", "\x80"];

/** Returns a response that is malformed, or almost. */
function hostileAnswer(random: Random): string {
  const pick = (list: readonly string[]) => list[random(list.length)] as string;
  const head = [pick(statusLines), ...Array.from({ length: random(5) }, () => pick(fields))].join("\r\n");
  const text = `${pick(interim)}${head}\r\n\r\n${pick(bodies)}`;
  if (random(2) === 0) return text;
  const place = random(Math.min(text.length, 400) + 1);
  return text.slice(0, place) + pick(damage) + text.slice(place + random(4));
}

/** Starts clients that request an endless response and never read it. */
export function startSilentReaders(edge: EdgeAddress, host: string, count: number): () => void {
  const sockets = Array.from({ length: count }, () => {
    // Pause before connecting; otherwise Node would read the first 64 KiB.
    const socket = open(edge, host).pause();
    socket.on("error", () => {}).write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    return socket;
  });
  return () => sockets.forEach((socket) => socket.destroy());
}

function open({ over, ...address }: EdgeAddress, host: string): Socket {
  return over === "http" ? connect(address) : connectTls({ ...address, servername: host, rejectUnauthorized: false });
}

const methods = ["GET", "GET", "HEAD", "POST", "PUT", "OPTIONS"];
const giveUpMs = 2000;
// On a busy machine a response may take long, so only one that takes longer than this counts as hanging.
const hangMs = 120_000;

/** Sends requests of all kinds to a hostile application, `workers` at a time; resolves with their number once stopped. */
export function startHostileTraffic(edge: EdgeAddress, host: string, random: Random, workers = 8) {
  let running = true;
  let count = 0;
  const agent = newAgent(edge);
  const work = async () => {
    for (; running; count += 1) await askOnce(edge, host, random, agent);
  };
  const done = Promise.all(Array.from({ length: workers }, work));
  return async () => {
    running = false;
    await done;
    agent.destroy();
    return count;
  };
}

function askOnce(edge: EdgeAddress, host: string, random: Random, agent: Agent): Promise<void> {
  const upgrade = random(6) === 0 ? { connection: "upgrade", upgrade: "websocket" } : {};
  const method = "upgrade" in upgrade ? "GET" : (methods[random(methods.length)] as string);
  const asking = begin(edge, host, { method, headers: upgrade, agent });
  return new Promise((resolve) => {
    const limit = setTimeout(() => asking.destroy(), giveUpMs);
    asking.on("close", () => (clearTimeout(limit), resolve()));
    asking.on("error", () => {});
    asking.on("upgrade", (_response, socket) => socket.destroy());
    asking.on("response", (response) => response.on("error", () => {}).resume());
    asking.end(method.startsWith("P") ? "x".repeat(random(100_000)) : undefined);
  });
}

/** Sends 50 requests a second to an innocent application for this long, over a few kept connections. */
export async function visitNeighbour(edge: EdgeAddress, host: string, forMs: number): Promise<Visits> {
  const agent = newAgent(edge, 50);
  const visits: Promise<number | string>[] = [];
  const endsAt = performance.now() + forMs;
  for (let next = performance.now(); next < endsAt; next += 20) {
    await sleep(Math.max(0, next - performance.now()));
    visits.push(visit(edge, host, agent));
  }
  const outcomes = await Promise.all(visits);
  agent.destroy();
  const latenciesMs = outcomes.filter((each) => typeof each === "number").sort((a, b) => a - b);
  return { latenciesMs, failures: outcomes.filter((each) => typeof each === "string") };
}

export interface Visits {
  /** In ascending order. */
  readonly latenciesMs: readonly number[];
  readonly failures: readonly string[];
}

function visit(edge: EdgeAddress, host: string, agent: Agent): Promise<number | string> {
  const startedAt = performance.now();
  return new Promise((resolve) => {
    const asking = begin(edge, host, { agent, signal: AbortSignal.timeout(hangMs) });
    asking.on("response", (response: IncomingMessage) => {
      response.on("error", (error) => resolve(error.message)).resume();
      response.on("end", () =>
        resolve(response.statusCode === 200 ? performance.now() - startedAt : `status ${response.statusCode}`),
      );
    });
    asking.on("error", (error) => resolve(error.message)).end();
  });
}
