import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { z } from "zod";
import { dryRun } from "../../src/contract/dry-run.ts";
import type { ErrorCode } from "../../src/contract/errors.ts";
import { errors } from "../../src/contract/errors.ts";
import { route, routes, type Result, type RouteName } from "../../src/contract/routes.ts";

/** A received request. */
export interface SeenRequest {
  readonly name: RouteName;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: unknown;
  readonly bytes: Buffer;
  readonly authorization: string | undefined;
}

/** The response of a row: a result in the contract's shape, the result of a dry run, or one of the row's errors. */
export type Script = {
  readonly [N in RouteName]?: (request: SeenRequest) => Result<N> | z.output<typeof dryRun> | Refusal;
};

/** Creates an error response. */
export class Refusal {
  readonly code: ErrorCode;
  readonly more: Readonly<Record<string, unknown>>;
  constructor(code: ErrorCode, more: Readonly<Record<string, unknown>> = {}) {
    this.code = code;
    this.more = more;
  }
}

export interface ScriptedPlatform extends AsyncDisposable {
  readonly url: string;
  /** Every request so far, oldest first. */
  readonly seen: readonly SeenRequest[];
}

/** The token that every scripted platform accepts. */
export const goodToken = "berth_o_0123456789012345678901234567890123456789012abcdef";

/** Starts a real HTTP server on a free port that answers the contract's rows from a script, and 404 for rows outside it. */
export async function startScriptedPlatform(script: Script): Promise<ScriptedPlatform> {
  const seen: SeenRequest[] = [];
  const server = createServer((request, response) => void answer({ script, seen }, request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, seen, [Symbol.asyncDispose]: () => close(server) };
}

async function answer(
  { script, seen }: { script: Script; seen: SeenRequest[] },
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const request = await read(incoming);
  if (request === undefined) return refuse(response, new Refusal("not_found"));
  seen.push(request);
  if (route(request.name).access !== "public" && request.authorization !== `Bearer ${goodToken}`)
    return refuse(response, new Refusal("unauthorized"));
  const result: unknown =
    script[request.name]?.(request) ??
    (route(request.name).result === null && request.name in script ? undefined : new Refusal("not_found"));
  if (result instanceof Refusal) return refuse(response, result);
  // A script that breaks the contract would make the test meaningless.
  const isDryRun = request.query.get("dry_run") === "true";
  const body = (isDryRun ? dryRun : route(request.name).result)?.parse(result);
  response.writeHead(isDryRun ? 200 : route(request.name).success[0], {
    "content-type": "application/json",
    "x-request-id": "req-1",
  });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

async function read(incoming: IncomingMessage): Promise<SeenRequest | undefined> {
  const url = new URL(incoming.url ?? "/", "http://platform");
  const bytes = await buffer(incoming);
  for (const row of routes) {
    const pattern = new RegExp(`^${row.path.replaceAll(".", "\\.").replace(/:(\w+)/g, "(?<$1>[^/]+)")}$`);
    const match = row.method === incoming.method ? pattern.exec(url.pathname) : null;
    if (match === null) continue;
    const params = Object.fromEntries(
      Object.entries(match.groups ?? {}).map(([key, value]) => [key, decodeURIComponent(value)]),
    );
    return {
      name: row.name,
      params,
      query: url.searchParams,
      body: row.upload || bytes.length === 0 ? undefined : JSON.parse(bytes.toString()),
      bytes,
      authorization: incoming.headers.authorization,
    };
  }
  return undefined;
}

function refuse(response: ServerResponse, { code, more }: Refusal): void {
  response.writeHead(errors[code].status, { "content-type": "application/json", "x-request-id": "req-1" });
  response.end(JSON.stringify({ error: errors[code].meaning, code, ...more }));
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
