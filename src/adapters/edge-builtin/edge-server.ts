import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Server as TcpServer, type AddressInfo, type ListenOptions, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Server as TlsServer } from "node:tls";
import { Exchange } from "./exchange.ts";
import type { PageCode } from "../../ports/edge-pages.ts";
import { pageStatus, rawPage, redirectHead, sendPage } from "./pages.ts";
import { hasBody, readTarget, requestFields, statedLength, type Client, type RequestTarget } from "./request-head.ts";
import type { LiveRoute, LiveRoutes } from "./live-routes.ts";
import { probeHeader, type EdgeSettings } from "./edge-settings.ts";
import { FailureLog } from "./failure-log.ts";
import type { LiveCertificates } from "./live-certificates.ts";
import { cutSlowClients } from "./slow-clients.ts";
import { createTlsListener, isEncrypted } from "./tls-listener.ts";
import { Tunnel } from "./tunnel.ts";
import { ProjectUsage } from "./usage.ts";

// How long an idle connection is kept.
const clientKeepAliveMs = 75_000;
const maxHeaderBytes = 32 * 1024;
const sweepEveryMs = 1000;
const checkHeadsEveryMs = 2000;
// The most requests and tunnels that one project's visitors may have open, which also bounds their buffers.
const maxOpenPerProject = 1000;
const maxClientConnections = 16_000;
const clientBufferBytes = 32 * 1024;
const hsts = "max-age=31536000";
// RFC 8555 §8.3.
const challengePath = "/.well-known/acme-challenge/";
const bindAttempts = 5;
const bindAgainAfterMs = 100;

/** Serves clients according to the live routes. */
export class EdgeServer {
  readonly #server: Server;
  readonly #tls: TlsServer | undefined;
  readonly #routes: LiveRoutes;
  readonly #settings: EdgeSettings;
  readonly #maxBodyBytes: number;
  readonly #running = new Set<Exchange | Tunnel>();
  readonly #sockets = new Set<Socket>();
  readonly #beginning = new Set<Socket>();
  readonly #clients = new WeakMap<Socket, Client>();
  readonly #failures = new FailureLog();
  #ports: EdgePorts = { port: 0, tls_port: null };
  #draining = false;
  #closed: Promise<void> | undefined;

  constructor(routes: LiveRoutes, certificates: LiveCertificates, settings: EdgeSettings) {
    this.#routes = routes;
    this.#settings = settings;
    this.#maxBodyBytes = settings.max_body_bytes === 0 ? Infinity : settings.max_body_bytes;
    const limits = {
      headersTimeout: settings.head_timeout_ms,
      requestTimeout: 0,
      keepAliveTimeout: clientKeepAliveMs,
      maxHeaderSize: maxHeaderBytes,
      highWaterMark: clientBufferBytes,
    };
    // HTTP/2 in clear text is not offered: forwarded as an upgrade, it would hide requests from the edge.
    const shouldUpgradeCallback = (request: IncomingMessage) => !/\bh2c?\b/i.test(request.headers.upgrade ?? "");
    this.#server = createServer({
      ...limits,
      connectionsCheckingInterval: Math.min(checkHeadsEveryMs, settings.head_timeout_ms),
      // Creates no stream for a request without a body.
      optimizeEmptyRequests: true,
      requireHostHeader: false,
      noDelay: true,
      shouldUpgradeCallback,
    });
    // Node silently drops header fields over this number, so do not limit it; the size limit is enough.
    this.#server.maxHeadersCount = 0;
    this.#server.maxConnections = maxClientConnections;
    this.#server.on("request", (request, response) => this.#serve(request, response, false));
    this.#server.on("checkContinue", (request, response) => this.#serve(request, response, true));
    this.#server.on("upgrade", (request, socket, early) => this.#upgrade(request, socket as Socket, early));
    this.#server.on("connect", (request, socket) =>
      refuse(socket as Socket, rawPage("method_not_allowed", request.headers.accept)),
    );
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket) => malformed(error, socket as Socket));
    this.#server.on("connection", (socket) => this.#remember(socket));
    if (settings.listen_tls_port !== null) this.#tls = createTlsListener(this.#server, certificates);
    // A connection counts once its handshake is done; until then it is only tracked so that it can be closed.
    this.#tls?.on("connection", (socket: Socket) => this.#handshaking(socket));
    setInterval(() => this.#sweep(), sweepEveryMs).unref();
  }

  /** Starts accepting, on inherited listening sockets if there are any. Resolves with the ports before the first client is read. */
  async listen({ fd, tlsFd }: InheritedSockets): Promise<EdgePorts> {
    const { listen_host: host, listen_port, listen_tls_port } = this.#settings;
    const [plain, tls] = [
      { host, port: listen_port },
      { host, port: listen_tls_port ?? 0 },
    ];
    const places = [fd === undefined ? plain : { fd }, tlsFd === undefined ? tls : { fd: tlsFd }];
    for (let attempt = 1; ; attempt += 1) {
      const [fault] = await this.#bind(places);
      if (fault === undefined) break;
      // Sockets of a killed edge process release the port a moment later.
      if (attempt === bindAttempts || fault.code !== "EADDRINUSE") throw fault;
      await sleep(bindAgainAfterMs);
    }
    this.#ports = { port: portOf(this.#server), tls_port: this.#tls === undefined ? null : portOf(this.#tls) };
    return this.#ports;
  }

  /** Listens on all ports or none, all within one turn of the event loop, so that no client is read too early. */
  async #bind(places: readonly Place[]): Promise<NodeJS.ErrnoException[]> {
    const binding = this.#listeners().map((server, at) => bind(server, places[at] as Place));
    const faults = (await Promise.all(binding)).filter((fault) => fault !== undefined);
    if (faults.length > 0) for (const server of this.#listeners()) if (server.listening) void closeListener(server);
    return faults;
  }

  /**
   * The descriptors of the listening sockets, plain and TLS. A successor inherits them, so that connections in their queues are not lost.
   */
  get listeningFds(): number[] {
    return this.#listeners().map((server) => (server as unknown as { _handle: { fd: number } })._handle.fd);
  }

  #listeners(): TcpServer[] {
    return this.#tls === undefined ? [this.#server] : [this.#server, this.#tls];
  }

  /** The number of client connections, tunnels included. */
  get connections(): number {
    return this.#sockets.size;
  }

  /**
   * Stops accepting; resolves when every connection has closed, after `limitMs` at the latest. Idle connections stay open until their next
   * request, which is answered with `Connection: close`: closing them now would break requests already on their way. `hurry` closes them at
   * once.
   */
  async drain(limitMs: number, hurry: boolean): Promise<void> {
    this.#draining = true;
    this.#closed ??= Promise.all(this.#listeners().map(closeListener)).then(() => {});
    if (hurry) this.#server.closeIdleConnections();
    const limit = setTimeout(() => this.#cut(), limitMs);
    const idle = hurry ? setInterval(() => this.#server.closeIdleConnections(), 50) : undefined;
    await this.#closed;
    clearTimeout(limit);
    clearInterval(idle);
  }

  #cut(): void {
    for (const socket of [...this.#sockets, ...this.#beginning]) socket.destroy();
  }

  #handshaking(socket: Socket): void {
    this.#beginning.add(socket);
    socket.once("close", () => this.#beginning.delete(socket));
  }

  #remember(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  #serve(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    if (this.#draining) response.shouldKeepAlive = false;
    const found = this.#find(request);
    if (typeof found === "string") return void this.#sendPage(request, response, found);
    const { route, target } = found;
    const redirect = this.#redirect(request.socket, found);
    if (redirect !== undefined) {
      response.writeHead(308, redirect).end();
      return route.usage.count(308, 0);
    }
    // If the application sets this field, its value wins.
    if (route.hsts && isEncrypted(request.socket)) response.setHeader("strict-transport-security", hsts);
    const maxBodyBytes = route.isControl ? Infinity : this.#maxBodyBytes;
    const page = this.#pageFor(route) ?? (statedLength(request) > maxBodyBytes ? "body_too_large" : undefined);
    if (page !== undefined) return countPage(route, this.#sendPage(request, response, page, route.notice));
    const [fields, { path }] = [this.#fields(request, found), target];
    const limits = { expectsContinue, maxBodyBytes };
    this.#start(new Exchange({ request, response, route, fields, path, ...limits, ...this.#common }));
  }

  #sendPage(request: IncomingMessage, response: ServerResponse, code: PageCode, notice?: string): number {
    if (request.headers.expect !== undefined) response.shouldKeepAlive = false;
    return sendPage(request, response, code, notice);
  }

  #upgrade(request: IncomingMessage, socket: Socket, early: Buffer): void {
    const accept = request.headers.accept;
    const found = this.#find(request);
    if (typeof found === "string") return refuse(socket, rawPage(found, accept));
    const { route, target } = found;
    const redirect = this.#redirect(socket, found);
    if (redirect !== undefined) {
      route.usage.count(308, 0);
      return refuse(socket, redirectHead(redirect));
    }
    // The parser does not read a body here, so the body would reach the replica as the tunnel's first bytes. Refuse it.
    const page = this.#pageFor(route) ?? (hasBody(request) ? "bad_request" : undefined);
    if (page !== undefined) {
      countPage(route, pageStatus(page));
      return refuse(socket, rawPage(page, accept, route.notice));
    }
    const fields = this.#fields(request, found);
    this.#start(new Tunnel({ request, socket, early, route, fields, path: target.path, ...this.#common }));
  }

  #fields(request: IncomingMessage, { route, target }: Found): string {
    const fields = requestFields(request, target, this.#client(request.socket));
    return route.isControl ? `${fields}${probeHeader}: ${this.#settings.probe_key}\r\n` : fields;
  }

  #start(one: Exchange | Tunnel): void {
    this.#running.add(one);
    one.start();
  }

  /** Returns the headers that redirect a plain request to HTTPS, if its route requires that. */
  #redirect(socket: Socket, { route, target }: Found): { location: string; "cache-control": string } | undefined {
    const port = this.#ports.tls_port;
    if (route.https !== "redirect" || port === null || isEncrypted(socket)) return undefined;
    const location = `https://${target.hostname}${port === 443 ? "" : `:${port}`}${target.path}`;
    return { location, "cache-control": "no-store" };
  }

  #pageFor(route: LiveRoute): PageCode | undefined {
    if (route.state !== "serving") return route.state === "empty" ? "nothing_deployed" : route.state;
    if (route.targets.length === 0) return "app_not_running";
    return route.load.open >= maxOpenPerProject ? "app_busy" : undefined;
  }

  #find(request: IncomingMessage): Found | PageCode {
    const target = readTarget(request);
    if (typeof target === "string") return target;
    const encrypted = isEncrypted(request.socket);
    const { challenge } = this.#routes;
    if (challenge !== undefined && !encrypted && target.path.startsWith(challengePath))
      return { route: challenge, target };
    const route = this.#routes.find(target.hostname);
    if (route === undefined || (encrypted && route.https === "off")) return "unknown_host";
    const isOurs = request.headers[probeHeader] === this.#settings.probe_key;
    // The platform's own requests ask for the page itself, so they get no redirect to HTTPS and are not counted.
    return { route: isOurs ? { ...route, https: "on", usage: new ProjectUsage("") } : route, target };
  }

  readonly #common = {
    failures: this.#failures,
    done: (ended: Exchange | Tunnel): void => void this.#running.delete(ended),
  };

  #client(socket: Socket): Client {
    let client = this.#clients.get(socket);
    if (client === undefined) {
      const address = (socket.remoteAddress ?? "unknown").replace(/^::ffff:(?=\d+\.)/, "").replace(/%.*$/, "");
      const { port, tls_port } = this.#ports;
      const how = isEncrypted(socket)
        ? { proto: "https" as const, port: tls_port as number }
        : { proto: "http" as const, port };
      this.#clients.set(socket, (client = { id: randomUUID(), requests: 0, address, ...how }));
    }
    return client;
  }

  #sweep(): void {
    const now = performance.now();
    const { connect_timeout_ms, upstream_timeout_ms } = this.#settings;
    for (const each of this.#running) {
      const connecting = each.attempts.connectingSinceMs;
      if (connecting === undefined && now - each.activeAtMs > upstream_timeout_ms) each.expire();
      else if (connecting !== undefined && now - connecting > connect_timeout_ms) each.attempts.expire();
    }
    cutSlowClients(this.#running, now);
    this.#routes.sweep(now);
  }
}

interface Found {
  readonly route: LiveRoute;
  readonly target: RequestTarget;
}

/** The ports the edge listens on; null without TLS. */
export interface EdgePorts {
  readonly port: number;
  readonly tls_port: number | null;
}

/** Descriptors of listening sockets. */
export interface InheritedSockets {
  readonly fd?: number | undefined;
  readonly tlsFd?: number | undefined;
}

type Place = ListenOptions | { readonly fd: number };

function portOf(server: TcpServer): number {
  return (server.address() as AddressInfo).port;
}

function bind(server: TcpServer, where: Place): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    server.once("error", resolve);
    server.listen({ ...where, backlog: 1024 }, () => {
      server.off("error", resolve);
      resolve(undefined);
    });
  });
}

/** Bypasses http's own close(), which closes idle connections. */
function closeListener(server: TcpServer): Promise<void> {
  return new Promise((resolve) => TcpServer.prototype.close.call(server, () => resolve()));
}

/** Counts an error page, except in maintenance: the owner has taken the application down, so the page says nothing about its health. */
function countPage(route: LiveRoute, status: number): void {
  if (route.state !== "maintenance") route.usage.count(status, 0);
}

/** Sends an answer over a bare socket and closes it. */
function refuse(socket: Socket, answer: string): void {
  socket.on("error", () => socket.destroy());
  socket.end(answer);
  socket.setTimeout(5000, () => socket.destroy());
}

/** Answers a request that the parser refused, unless a response is already on its way over this connection. */
function malformed(error: NodeJS.ErrnoException, socket: Socket): void {
  const begun = (socket as Socket & { _httpMessage?: { _headerSent?: boolean } })._httpMessage?._headerSent === true;
  if (!socket.writable || begun || error.code === "ECONNRESET") return void socket.destroy();
  refuse(socket, rawPage(errorPages.get(error.code ?? "") ?? "bad_request"));
}

const errorPages = new Map<string, PageCode>([
  ["HPE_HEADER_OVERFLOW", "headers_too_large"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "request_timeout"],
]);
