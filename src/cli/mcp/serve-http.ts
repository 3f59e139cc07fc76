import { hash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

export interface HttpServing {
  /** 0 picks a free port. */
  readonly port: number;
  /** The bearer token that clients must send. */
  readonly key: string;
  /** Creates the server for one request. */
  readonly open: () => McpServer;
}

export interface ServedHttp {
  readonly url: string;
  close(): Promise<void>;
}

const mostBytes = 1024 * 1024;

/**
 * Serves tools over HTTP at `/mcp`, on loopback only. Requests are independent: no state is kept between them. Because web pages in a
 * browser on this machine can reach loopback, the key is required, and requests with a foreign `Origin` or `Host` are refused.
 */
export async function serveHttp(serving: HttpServing): Promise<ServedHttp> {
  const server = createServer((request, response) => {
    handle(serving, request, response).catch(() => response.destroy());
  });
  await listen(server, serving.port);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
}

async function handle(serving: HttpServing, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const refused = refusal(serving, request);
  if (refused !== undefined) return refuse(response, ...refused);
  const body = await readBody(request);
  if (body === undefined) return refuse(response, 413, "The request is too large, or no JSON.");
  const server = serving.open();
  const transport = new StreamableHTTPServerTransport({});
  response.once("close", () => void server.close());
  // The package's types are wrong under exactOptionalPropertyTypes.
  await server.connect(transport as unknown as Transport);
  await transport.handleRequest(request, response, body);
}

type Refusal = readonly [status: number, error: string, headers?: Readonly<Record<string, string>>];

function refusal({ key }: HttpServing, request: IncomingMessage): Refusal | undefined {
  const { host, origin, authorization } = request.headers;
  if (!isLoopback(host) || (origin !== undefined && !isLoopback(URL.parse(origin)?.host)))
    return [403, "Only programs on this machine may call this server."];
  const given = /^Bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  if (given === undefined || !isSame(given, key))
    return [401, "Send the key of this server as a bearer token.", { "www-authenticate": "Bearer" }];
  if (URL.parse(request.url ?? "", "http://mcp")?.pathname !== "/mcp") return [404, "The tools are at /mcp."];
  if (request.method !== "POST") return [405, "Requests are sent by POST.", { allow: "POST" }];
  return undefined;
}

function isLoopback(host: string | undefined): boolean {
  return /^(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?$/i.test(host ?? "");
}

// Compares hashes, which have the same length, so that the comparison takes constant time.
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(hash("sha256", one, "buffer"), hash("sha256", other, "buffer"));
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > mostBytes) return undefined;
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString()) as unknown;
  } catch {
    return undefined;
  }
}

function refuse(response: ServerResponse, ...[status, error, headers = {}]: Refusal): void {
  response.writeHead(status, { "content-type": "application/json", connection: "close", ...headers });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32_000, message: error } }));
}
