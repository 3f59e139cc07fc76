import { once } from "node:events";
import { request, type RequestOptions } from "node:http";
import { connect, type Socket } from "node:net";

// An answer takes milliseconds; a table of many thousands of routes takes up to a second to read.
const timeoutMs = 2000;
const tableTimeoutMs = 4000;

/**
 * Calls an edge process over its control socket, or over a connection made before, which serves one call. Rejects when it isn't there,
 * doesn't answer in time, or refuses.
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

/** A connection to a control socket that is there for a later call: the folder of sockets is closed to a process that has given its rights up. */
export async function connectEdge(socketPath: string): Promise<Socket> {
  const socket = connect(socketPath);
  await once(socket, "connect");
  // A call over it reports its faults.
  return socket.on("error", () => {});
}

/** The last counts of the process at the other end, once it ends. Rejects when it is killed before. */
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
