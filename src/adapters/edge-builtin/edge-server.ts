import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Server as TcpServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Exchange } from "./exchange.ts";
import type { PageCode } from "../../ports/edge-pages.ts";
import { pageStatus, rawPage, sendPage } from "./pages.ts";
import { hasBody, readTarget, requestHeaders, type Client, type RequestTarget } from "./request-head.ts";
import type { LiveRoute, LiveRoutes } from "./live-routes.ts";
import { probeHeader, type EdgeSettings } from "./edge-settings.ts";
import { FailureLog } from "./failure-log.ts";
import { cutSlowClients } from "./slow-clients.ts";
import { Tunnel } from "./tunnel.ts";
import { ProjectUsage } from "./usage.ts";

// A client gets this long to send a request's header (slowloris), and keeps an idle connection this long.
const headersTimeoutMs = 15_000;
const clientKeepAliveMs = 75_000;
const maxHeaderBytes = 32 * 1024;
const sweepEveryMs = 1000;
// What one project's visitors may have open at a time, so that their buffers are bounded too.
const maxOpenPerProject = 1000;
const maxClientConnections = 16_000;
const clientBufferBytes = 32 * 1024;
const bindAttempts = 5;
const bindAgainAfterMs = 100;

/** Serves clients by the live routes. */
export class EdgeServer {
  readonly #server: Server;
  readonly #routes: LiveRoutes;
  readonly #settings: EdgeSettings;
  readonly #running = new Set<Exchange | Tunnel>();
  readonly #sockets = new Set<Socket>();
  readonly #clients = new WeakMap<Socket, Client>();
  readonly #failures = new FailureLog();
  #port = 0;
  #draining = false;
  #closed: Promise<void> | undefined;

  constructor(routes: LiveRoutes, settings: EdgeSettings) {
    this.#routes = routes;
    this.#settings = settings;
    const limits = {
      headersTimeout: headersTimeoutMs,
      requestTimeout: 0,
      keepAliveTimeout: clientKeepAliveMs,
      maxHeaderSize: maxHeaderBytes,
      highWaterMark: clientBufferBytes,
    };
    // HTTP/2 in clear text is not offered: passed on, it would hide requests from the edge.
    const shouldUpgradeCallback = (request: IncomingMessage) => !/\bh2c?\b/i.test(request.headers.upgrade ?? "");
    this.#server = createServer({
      ...limits,
      connectionsCheckingInterval: 2000,
      requireHostHeader: false,
      noDelay: true,
      shouldUpgradeCallback,
    });
    // Node drops what is beyond this number without a word; the size limit is enough.
    this.#server.maxHeadersCount = 0;
    this.#server.maxConnections = maxClientConnections;
    this.#server.on("request", (request, response) => this.#serve(request, response, false));
    this.#server.on("checkContinue", (request, response) => this.#serve(request, response, true));
    this.#server.on("upgrade", (request, socket, early) => this.#upgrade(request, socket as Socket, early));
    this.#server.on("connect", (request, socket) =>
      refuse(socket as Socket, "method_not_allowed", request.headers.accept),
    );
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket) => malformed(error, socket as Socket));
    this.#server.on("connection", (socket) => this.#remember(socket));
    setInterval(() => this.#sweep(), sweepEveryMs).unref();
  }

  /** Starts accepting, on an inherited listening socket when `fd` is given. Resolves with the port, before the first client is read. */
  async listen(fd?: number): Promise<number> {
    for (let attempt = 1; ; attempt += 1) {
      const fault = await this.#bind(fd);
      if (fault === undefined) break;
      // What a killed edge process leaves behind lets go of the port a moment later.
      if (fault.code !== "EADDRINUSE" || attempt === bindAttempts) throw fault;
      await sleep(bindAgainAfterMs);
    }
    this.#port = (this.#server.address() as AddressInfo).port;
    return this.#port;
  }

  #bind(fd?: number): Promise<NodeJS.ErrnoException | undefined> {
    const where =
      fd === undefined ? { host: this.#settings.listen_host, port: this.#settings.listen_port, backlog: 1024 } : { fd };
    return new Promise((resolve) => {
      this.#server.once("error", resolve);
      this.#server.listen(where, () => {
        this.#server.off("error", resolve);
        resolve(undefined);
      });
    });
  }

  /** The listening socket, for a successor to inherit: connections that wait in its queue are then not lost. */
  get listeningFd(): number {
    return (this.#server as unknown as { _handle: { fd: number } })._handle.fd;
  }

  /** Connections of clients, tunnels included. */
  get connections(): number {
    return this.#sockets.size;
  }

  /**
   * Accepts no more; resolves when every connection has ended, at the latest after `limitMs`. Idle connections are left to their clients, whose
   * next request is answered with `Connection: close`: closing them now would cut requests that are on their way. `hurry` closes them at once.
   */
  async drain(limitMs: number, hurry: boolean): Promise<void> {
    this.#draining = true;
    // Not http's own close(): that one closes idle connections. A second call may shorten the first one's limit.
    this.#closed ??= new Promise<void>((resolve) => TcpServer.prototype.close.call(this.#server, () => resolve()));
    if (hurry) this.#server.closeIdleConnections();
    const limit = setTimeout(() => this.#cut(), limitMs);
    const idle = hurry ? setInterval(() => this.#server.closeIdleConnections(), 50) : undefined;
    await this.#closed;
    clearTimeout(limit);
    clearInterval(idle);
  }

  #cut(): void {
    for (const socket of this.#sockets) socket.destroy();
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
    const page = this.#pageFor(route);
    if (page !== undefined) return route.usage.count(this.#sendPage(request, response, page), 0);
    const headers = requestHeaders(request, target, this.#client(request.socket));
    const { path } = target;
    this.#start(new Exchange({ request, response, route, headers, path, expectsContinue, ...this.#common }));
  }

  #sendPage(request: IncomingMessage, response: ServerResponse, code: PageCode): number {
    if (request.headers.expect !== undefined) response.shouldKeepAlive = false;
    return sendPage(request, response, code);
  }

  #upgrade(request: IncomingMessage, socket: Socket, early: Buffer): void {
    const accept = request.headers.accept;
    const found = this.#find(request);
    if (typeof found === "string") return refuse(socket, found, accept);
    const { route, target } = found;
    // The parser leaves a body unread here, and it would reach the replica as the tunnel's first bytes.
    const page = this.#pageFor(route) ?? (hasBody(request) ? "bad_request" : undefined);
    if (page !== undefined) {
      route.usage.count(pageStatus(page), 0);
      return refuse(socket, page, accept);
    }
    const headers = requestHeaders(request, target, this.#client(socket));
    this.#start(new Tunnel({ request, socket, early, route, headers, path: target.path, ...this.#common }));
  }

  #start(one: Exchange | Tunnel): void {
    this.#running.add(one);
    one.start();
  }

  #pageFor(route: LiveRoute): PageCode | undefined {
    if (route.state !== "serving") return route.state === "empty" ? "nothing_deployed" : route.state;
    if (route.targets.length === 0) return "app_not_running";
    return route.load.open >= maxOpenPerProject ? "app_busy" : undefined;
  }

  #find(request: IncomingMessage): { route: LiveRoute; target: RequestTarget } | PageCode {
    const target = readTarget(request);
    if (typeof target === "string") return target;
    const route = this.#routes.find(target.hostname);
    if (route === undefined) return "unknown_host";
    const isOurs = request.headers[probeHeader] === this.#settings.probe_key;
    return { route: isOurs ? { ...route, usage: new ProjectUsage("") } : route, target };
  }

  readonly #common = {
    failures: this.#failures,
    done: (ended: Exchange | Tunnel): void => void this.#running.delete(ended),
  };

  #client(socket: Socket): Client {
    let client = this.#clients.get(socket);
    if (client === undefined) {
      const address = (socket.remoteAddress ?? "unknown").replace(/^::ffff:(?=\d+\.)/, "").replace(/%.*$/, "");
      this.#clients.set(socket, (client = { address, proto: "http", port: this.#port }));
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
    this.#routes.sweep();
  }
}

function refuse(socket: Socket, code: PageCode, accept?: string): void {
  socket.on("error", () => socket.destroy());
  socket.end(rawPage(code, accept));
  socket.setTimeout(5000, () => socket.destroy());
}

/** Answers what the parser refused, unless an answer is already on its way over this connection. */
function malformed(error: NodeJS.ErrnoException, socket: Socket): void {
  const begun = (socket as Socket & { _httpMessage?: { _headerSent?: boolean } })._httpMessage?._headerSent === true;
  if (!socket.writable || begun || error.code === "ECONNRESET") return void socket.destroy();
  refuse(socket, errorPages.get(error.code ?? "") ?? "bad_request");
}

const errorPages = new Map<string, PageCode>([
  ["HPE_HEADER_OVERFLOW", "headers_too_large"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "request_timeout"],
]);
