import { once } from "node:events";
import { renameSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { Agent, createServer, request, type IncomingMessage, type RequestListener } from "node:http";
import { Agent as TlsAgent, request as requestTls } from "node:https";
import { connect, createServer as createSocketServer, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { WebSocket, WebSocketServer } from "ws";
import { eventually } from "../../test/support/eventually.ts";
import { freePort } from "../../test/support/free-port.ts";
import { runOk } from "../kit/exec.ts";
import type { EdgeAddress } from "./edge-attack.suite.ts";
import type { Edge, EdgeCertificate, Route, Target } from "./edge.ts";

/** A request that a test sends. */
export interface Asked {
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly agent?: Agent;
}

/** The limit of bodies for an edge under test: larger than all bodies of the other tests. */
export const suiteMaxBodyBytes = 8 * 1024 * 1024;

/** Behaviour that HTTP leaves to an adapter. */
export interface EdgeAllowances {
  /**
   * RFC 9110 §9.2.2: after a failure of the application, the edge may close a kept connection without a response, so that the client
   * repeats the request. Over a new connection the response is always 502.
   */
  readonly closesKeptOnFailure?: boolean;
  /**
   * RFC 9112 §6.1: instead of refusing a request with a length and chunks, the edge reads it by its chunks alone and closes the connection.
   */
  readonly readsChunksBesideLength?: boolean;
  /**
   * The edge may forward a head with a control character, a status below 100 or too many interim responses to that application's client.
   */
  readonly passesBrokenHeads?: boolean;
  /**
   * A response that comes before the request's body was read may be lost with its connection, if the rest of the body exceeds the buffers.
   */
  readonly cutsEarlyAnswers?: boolean;
}

/** What an adapter's test provides to `edgeSuite`. */
export interface EdgeSuiteOptions {
  readonly peakMemoryMb: () => Promise<number>;
  readonly over: "http" | "https";
  readonly allows?: EdgeAllowances;
}

/** One edge and the applications behind it, for tests. */
export class Stage {
  readonly over: "http" | "https";
  readonly agent: Agent;
  readonly allows: EdgeAllowances;
  readonly #makeEdge: () => Promise<Edge>;
  readonly #servers: { close(): void; closeAllConnections?(): void }[] = [];
  #edge: Promise<Edge> | undefined;
  #version = 0;

  constructor(makeEdge: () => Promise<Edge>, over: "http" | "https" = "http", allows: EdgeAllowances = {}) {
    this.#makeEdge = makeEdge;
    this.allows = allows;
    this.over = over;
    this.agent = this.newAgent({ keepAlive: true });
  }

  /** Returns an agent with connections of its own. */
  newAgent(options: { keepAlive?: boolean; maxSockets?: number } = {}): Agent {
    return this.over === "http" ? new Agent(options) : new TlsAgent({ ...options, rejectUnauthorized: false });
  }

  /** Returns the agent for requests that fail in the application. */
  agentForFailures(): Agent {
    return this.allows.closesKeptOnFailure === true ? this.newAgent() : this.agent;
  }

  edge(): Promise<Edge> {
    return (this.#edge ??= this.#begin());
  }

  async #begin(): Promise<Edge> {
    const edge = await this.#makeEdge();
    if (this.over === "https") {
      const certificate = await makeCertificate(["*.test"]);
      await edge.applyCertificates({ version: 1, certificates: [certificate] });
    }
    return edge;
  }

  /** Uses another edge from now on, such as that of a restarted control plane. */
  use(edge: Edge): void {
    this.#edge = Promise.resolve(edge);
  }

  async listen(): Promise<string> {
    const { listen, listen_tls } = await (await this.edge()).observe();
    return (this.over === "http" ? listen : listen_tls) as string;
  }

  async webSocket(host: string): Promise<WebSocket> {
    const url = `${this.over === "http" ? "ws" : "wss"}://${await this.listen()}/chat`;
    // ws passes this to tls.connect(), but its types lack it.
    const named = { servername: host } as object;
    const socket = new WebSocket(url, [], { headers: { host }, rejectUnauthorized: false, ...named });
    await once(socket, "open");
    return socket;
  }

  /** Starts an application; with `echo` it also echoes WebSocket messages. `at` names another loopback address. */
  async app(listener: RequestListener, echo = false, at?: Target): Promise<Target> {
    const server = createServer(listener);
    this.#servers.push(server);
    if (echo)
      new WebSocketServer({ server }).on("connection", (socket) =>
        socket.on("message", (message) => socket.send(message)),
      );
    return listening(server, at);
  }

  /** Returns an address on which nothing listens. */
  async deadTarget(): Promise<Target> {
    return { host: "127.0.0.1", port: await freePort() };
  }

  /** Applies routes for these hosts, each a project of its own; resolves with the table's version. */
  serve(hosts: Record<string, readonly Target[]>): Promise<number> {
    return this.serveRoutes(Object.entries(hosts).map(([hostname, targets]) => route(hostname, targets)));
  }

  async serveRoutes(routes: readonly Route[], challenge: Target | null = null): Promise<number> {
    const edge = await this.edge();
    this.#version += 10;
    await edge.apply({ version: this.#version, routes, challenge });
    return this.#version;
  }

  async open(target: Target): Promise<number> {
    return (await (await this.edge()).openRequests()).get(`${target.host}:${target.port}`) ?? 0;
  }

  /** Starts a request whose body the test writes itself. Call `listen` or `serve` first. */
  begin(asked: Asked) {
    const [host, port] = this.#address();
    const headers = { host: asked.host, ...asked.headers };
    return (this.over === "http" ? request : requestTls)({
      host,
      port,
      servername: serverName(asked.host),
      path: asked.path ?? "/",
      method: asked.method ?? "GET",
      headers,
      agent: asked.agent ?? this.agent,
    });
  }

  /** Sends a request and resolves with its response once the head has arrived. */
  async open_(asked: Asked): Promise<IncomingMessage> {
    await this.learnAddress();
    // Node's client would send the body of a DELETE without any framing.
    const framed =
      asked.body === undefined || asked.headers?.["transfer-encoding"]
        ? {}
        : { "content-length": `${Buffer.byteLength(asked.body)}` };
    const outgoing = this.begin({ ...asked, headers: { ...framed, ...asked.headers } });
    const response = once(outgoing, "response") as Promise<[IncomingMessage]>;
    outgoing.end(asked.body);
    const [answer] = await response;
    // A response may come, and the connection close, before the whole body was written.
    outgoing.on("error", () => {});
    return answer;
  }

  async ask(asked: Asked): Promise<{ status: number; headers: IncomingMessage["headers"]; body: string }> {
    const response = await this.open_(asked);
    return { status: response.statusCode as number, headers: response.headers, body: await text(response) };
  }

  /** Sends raw bytes and resolves with everything that the edge sends until it closes the connection. */
  async raw(bytes: string): Promise<string> {
    await this.learnAddress();
    const [host, port] = this.#address();
    const socket = this.#connect(host, port);
    const chunks: Buffer[] = [];
    // A response may be late but arrives in one piece; afterwards the connection may stay open.
    socket.setTimeout(20_000, () => socket.destroy());
    socket.on("data", (chunk: Buffer) => (chunks.push(chunk), socket.setTimeout(1500)));
    // A refusal may reset the connection while the client is still writing.
    socket.on("error", () => {});
    socket.write(bytes);
    await once(socket, "close").catch(() => {});
    return Buffer.concat(chunks).toString("latin1");
  }

  async until(probe: () => Promise<boolean>): Promise<void> {
    await eventually(probe, "the edge has come to it");
  }

  async close(): Promise<void> {
    this.agent.destroy();
    if (this.#edge !== undefined) await (await this.#edge).stop(0);
    for (const server of this.#servers) {
      server.close();
      server.closeAllConnections?.();
    }
  }

  async address(): Promise<EdgeAddress> {
    await this.learnAddress();
    const [host, port] = this.#address();
    return { host, port, over: this.over };
  }

  /** Updates the address on which the edge listens. */
  async learnAddress(): Promise<void> {
    this.#listen = (await this.listen()) ?? this.#listen;
  }

  #connect(host: string, port: number): Socket {
    if (this.over === "http") return connect({ host, port });
    return connectTls({ host, port, servername: "raw.test", rejectUnauthorized: false });
  }

  #listen = "";

  #address(): [host: string, port: number] {
    const at = this.#listen.lastIndexOf(":");
    return [this.#listen.slice(0, at), Number(this.#listen.slice(at + 1))];
  }
}

/** Sends requests one after the other over a few connections, kept or new for each request, until stopped. */
export function startLoad(stage: Stage, host: string, { connections = 8, keepAlive = true } = {}) {
  const failures: string[] = [];
  let answered = 0;
  let running = true;
  const agent = stage.newAgent({ keepAlive, maxSockets: connections });
  const workers = Array.from({ length: connections }, async () => {
    while (running) {
      const answer = await stage.ask({ host, agent }).catch((error: Error) => ({ status: 0, body: error.message }));
      if (answer.status !== 200) failures.push(`${answer.status} ${answer.body}`);
      answered += 1;
    }
  });
  /** Resolves after this many further responses. */
  const passed = async (more: number) => {
    const goal = answered + more;
    await stage.until(async () => answered >= goal);
  };
  const stop = async () => {
    running = false;
    await Promise.all(workers);
    agent.destroy();
    return { failures, answered };
  };
  return { passed, stop };
}

/** Replaces a Unix socket by one that never answers, so that calls of its owner hang. Resolves with a function that restores the socket. */
export async function silenceSocket(path: string): Promise<() => void> {
  renameSync(path, `${path}.aside`);
  const sockets = new Set<Socket>();
  const server = createSocketServer((socket) => void sockets.add(socket.on("error", () => {}).unref()));
  await new Promise<void>((resolve) => server.listen(path, resolve));
  server.unref();
  return () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    renameSync(`${path}.aside`, path);
  };
}

/** Returns a handler that always responds with this text. */
export function say(words: string): RequestListener {
  return (_req, res) => void res.end(words);
}

/** Returns the whole body as text. */
export async function text(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Returns a route without a redirect, for a project of its own. */
export function route(hostname: string, targets: readonly Target[]): Route {
  return { hostname, project_id: `prj_${hostname}`, state: "serving", targets, ...plain };
}

/** The HTTPS fields of a route without a redirect. */
export const plain = { https: "on", hsts: false } as const;

/** Returns the server name that a client sends in its handshake for a `Host`. */
function serverName(host: string): string {
  return host.toLowerCase().replace(/:\d*$|\.$/, "");
}

async function listening(server: Server, at: Target = { host: "127.0.0.1", port: 0 }): Promise<Target> {
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen({ ...at }, resolve));
  return { host: at.host, port: (server.address() as AddressInfo).port };
}

/** Creates a self-signed certificate for these names. */
export async function makeCertificate(names: readonly string[], days = 30): Promise<EdgeCertificate> {
  const dir = await mkdtemp(join(tmpdir(), "berth-certificate-"));
  const [key, chain] = [join(dir, "key.pem"), join(dir, "chain.pem")];
  const subject = [
    "-subj",
    `/CN=${names[0]}`,
    "-addext",
    `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}`,
  ];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", `${days}`];
  try {
    await runOk({ file: "openssl", args: ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", chain] });
    return { names, chain_pem: await readFile(chain, "utf8"), key_pem: await readFile(key, "utf8") };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
