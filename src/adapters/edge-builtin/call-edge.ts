import { once } from "node:events";
import { request, type RequestOptions } from "node:http";
import { connect, type Socket } from "node:net";

// A response takes milliseconds; reading a table of many thousands of routes takes up to a second.
const timeoutMs = 2000;
const tableTimeoutMs = 4000;

/**
 * Calls an edge process over its control socket, or over an existing connection, which serves one call. Rejects when the process is not
 * running, does not respond in time, or refuses.
 */
export function callEdge(
  at: string | Socket,
  method: "GET" | "PUT" | "POST",
  path: string,
  body?: unknown,
): Promise<unknown> {
  const limitMs = method === "PUT" ? tableTimeoutMs : timeoutMs;
  return call(at, { method, path, signal: AbortSignal.timeout(limitMs) }, body);
}

/** Queries the state of an edge process; `signal` ends the wait. */
export function askEdgeStatus(socketPath: string, signal: AbortSignal): Promise<unknown> {
  return call(socketPath, { method: "GET", path: "/status", signal });
}

/** Opens a connection for a later call: a process that has dropped its privileges can no longer reach the folder of control sockets. */
export async function connectEdge(socketPath: string): Promise<Socket> {
  const socket = connect(socketPath);
  await once(socket, "connect");
  // The call that uses the connection reports its errors.
  return socket.on("error", () => {});
}

/** Resolves with the final usage counts of the connected process when it stops. Rejects if it is killed before. */
export function awaitLastUsage(at: Socket): Promise<unknown> {
  return call(at, { method: "GET", path: "/last-usage" });
}

function call(at: string | Socket, options: RequestOptions, body?: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const where = typeof at === "string" ? { socketPath: at, agent: false } : { createConnection: () => at };
    const asking = request({ ...options, ...where }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () => {
        const answer = Buffer.concat(chunks).toString("utf8");
        if (response.statusCode === 200) resolve(JSON.parse(answer));
        else reject(new Error(`The edge refused ${options.method} ${options.path}: ${answer.slice(0, 500)}`));
      });
    });
    asking.on("error", reject);
    asking.end(text);
  });
}
