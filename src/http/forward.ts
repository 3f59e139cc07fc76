import { Agent, request as requestHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { request as requestHttps } from "node:https";
import { pipeline, type Duplex } from "node:stream";
import { routes, type RouteName } from "../contract/routes.ts";
import type { Row } from "../contract/table.ts";
import { Refused } from "../features/context.ts";
import { liveControlPlanes } from "../features/control-planes/control-planes.ts";
import type { Log } from "../kit/log.ts";
import type { Db } from "../store/database.ts";

/** Forwards requests that this process can't serve to a process that can, after their heads have been checked. */
export interface Forward {
  wants(request: IncomingMessage): boolean;
  /** Rejects with a refusal before a response has started, and with a fault after that. */
  request(request: IncomingMessage, response: ServerResponse): Promise<void>;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
}

export interface ForwardOptions {
  readonly db: Db;
  /** Whether this process has the role `api`: then it forwards only what needs the primary. */
  readonly servesApi: boolean;
  readonly log: Log;
}

/** Marks a forwarded request, which is not forwarded again: two processes could otherwise pass it back and forth. */
const mark = "berth-forwarded";
/** Paths that each process serves itself. */
const own = new Set(["/healthz", "/readyz", "/metrics"]);

/** Returns whether another process of the platform has forwarded the request; its `Host` is then this process's address. */
export function isForwarded(headers: IncomingMessage["headers"]): boolean {
  return headers[mark] !== undefined;
}

export function createForward({ db, servesApi, log }: ForwardOptions): Forward {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 32 });
  const findTarget = createTargets(db);
  async function open(request: IncomingMessage) {
    const target = new URL(await findTarget());
    const headers = { ...withoutHops(request), host: target.host, [mark]: "1" };
    const isSecure = target.protocol === "https:";
    const send = isSecure ? requestHttps : requestHttp;
    // As sent, and not resolved against the target: `//host/` and `http://host/` would lead to a host that the client names.
    const path = request.url ?? "/";
    return send(target, { method: request.method, path, headers, ...(isSecure ? {} : { agent }) });
  }
  return {
    wants({ method = "GET", url = "/", headers }) {
      if (headers[mark] !== undefined) return false;
      return servesApi ? needsPrimary(method, url) : !own.has(url.split("?", 1)[0] ?? "");
    },
    async request(request, response) {
      const sent = await open(request);
      const answered = new Promise<IncomingMessage>((resolve, reject) =>
        sent.once("response", resolve).once("error", reject),
      );
      response.once("close", () => sent.destroy());
      request.pipe(sent);
      const answer = await answered.catch((error: unknown) => {
        log.warn({ error: String(error) }, "a request could not be forwarded");
        throw away();
      });
      response.writeHead(answer.statusCode ?? 502, withoutHops(answer)).flushHeaders();
      await new Promise<void>((resolve) => pipeline(answer, response, () => resolve()));
    },
    async upgrade(request, socket, head) {
      const sent = await open(request);
      sent.setHeader("connection", "upgrade").setHeader("upgrade", request.headers.upgrade ?? "websocket");
      socket.once("close", () => sent.destroy());
      await new Promise<void>((resolve, reject) => {
        sent.once("error", () => reject(away()));
        sent.once("response", (answer) => resolve(relay(answer, socket)));
        sent.once("upgrade", (answer, other, first) => {
          socket.write(headOf(answer));
          socket.write(first);
          other.write(head);
          pipeline(socket, other, socket, () => resolve());
        });
        sent.end();
      });
    },
  };
}

const keptMs = 1000;

function createTargets(db: Db): () => Promise<string> {
  let known: { readonly url: string; readonly atMs: number } | undefined;
  return async () => {
    if (known !== undefined && performance.now() - known.atMs < keptMs) return known.url;
    const primary = (await liveControlPlanes(db)).find(({ roles }) => roles.includes("git"));
    if (primary === undefined) throw away();
    known = { url: primary.url, atMs: performance.now() };
    return known.url;
  };
}

function away(): Refused {
  return new Refused("unavailable", {
    error:
      "The primary control plane, which serves repositories, builds, logs and databases, does not respond. Try again in a moment.",
  });
}

const hops = ["connection", "keep-alive", "expect", "upgrade", "proxy-connection", "te"];

function withoutHops({ headers }: IncomingMessage) {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hops.includes(name)));
}

function headOf({ statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const fields = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${rawHeaders[at + 1]}`] : []));
  return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...fields, "", ""].join("\r\n");
}

/** Sends the response of a refused upgrade to the client. */
function relay(answer: IncomingMessage, socket: Duplex): void {
  const fields = Object.entries(withoutHops(answer)).filter(([name]) => name !== "transfer-encoding");
  const lines = fields.map(([name, value]) => `${name}: ${String(value)}`);
  socket.write([`HTTP/1.1 ${answer.statusCode} Refused`, ...lines, "connection: close", "", ""].join("\r\n"));
  // Nothing reads from the socket any more, so the client's disconnect would go unnoticed without this.
  pipeline(answer, socket, () => socket.destroy());
}

/** Returns whether only the primary control plane can serve a request. All other requests are served from the database. */
function needsPrimary(method: string, url: string): boolean {
  const path = url.split("?", 1)[0] ?? "";
  // A message at `/mcp` may call any row.
  if (path.startsWith("/git/") || path === "/mcp") return true;
  return patterns.some((row) => isMethod(row.method, method) && row.pattern.test(path));
}

/** Nouns whose rows use data on the primary's disk or processes on its machine. */
const nouns: ReadonlySet<string> = new Set([
  "branches",
  "builds",
  "data",
  "database",
  "disk",
  "follow",
  "logs",
  "requests",
  "runs",
]);
/** Rows of other nouns that do the same. */
const names: ReadonlySet<string> = new Set<RouteName>([
  "deployments.compare",
  "deployments.create",
  "diagnosis.get",
  "platform.dismiss",
  "platform.drain",
  "platform.finalize",
  "platform.join",
  "platform.machines",
  "platform.move",
  "platform.upgrade",
  "platform.versions",
  // Shows the human who approves it what the project's database holds.
  "projects.delete",
]);

const patterns = (routes as readonly Row[]).filter(isOfPrimary).map((row) => ({
  method: row.method,
  pattern: new RegExp(`^${row.path.replace(/:\w+/g, "[^/]+")}$`),
}));

function isMethod(own: string, asked: string): boolean {
  return own === asked || (own === "GET" && asked === "HEAD");
}

function isOfPrimary({ name }: Row): boolean {
  return names.has(name) || nouns.has(name.split(".")[0] ?? "");
}
