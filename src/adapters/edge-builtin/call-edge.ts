import { request } from "node:http";

const timeoutMs = 10_000;

/** Asks an edge process over its control socket. Rejects when it isn't there, doesn't answer in 10 s, or refuses. */
export function callEdge(
  socketPath: string,
  method: "GET" | "PUT" | "POST",
  path: string,
  body?: unknown,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const asking = request(
      { socketPath, method, path, agent: false, signal: AbortSignal.timeout(timeoutMs) },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const answer = Buffer.concat(chunks).toString("utf8");
          if (response.statusCode === 200) resolve(JSON.parse(answer));
          else reject(new Error(`The edge refused ${method} ${path}: ${answer.slice(0, 500)}`));
        });
      },
    );
    asking.on("error", reject);
    asking.end(text);
  });
}
