import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * The control plane's calls, by method and path. Results are sent as JSON; an error becomes a 500 with its message. `text` is the unparsed
 * body.
 */
export type ControlCalls = Readonly<Record<string, (body: unknown, text: string) => unknown>>;

const largestBodyBytes = 64 * 1024 * 1024;
const settleWithinMs = 10_000;

export interface ControlServer {
  /** Resolves when all pending responses have been sent, so that the process may exit; after 10 s at the latest. */
  settled(): Promise<void>;
}

/** Listens for the control plane on a Unix socket. The process's umask and the folder (0700) keep other users out. */
export async function listenControl(socketPath: string, calls: ControlCalls): Promise<ControlServer> {
  // Left by an earlier process with the same pid.
  rmSync(socketPath, { force: true });
  const due = new Set<Promise<void>>();
  const server = createServer((request, response) => {
    const left = new Promise<void>((resolve) => response.once("finish", resolve).once("close", resolve));
    due.add(left);
    void left.then(() => due.delete(left));
    void answer(request, response, calls);
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(socketPath, resolve));
  return { settled: async () => void (await Promise.race([Promise.all(due), sleep(settleWithinMs)])) };
}

async function answer(request: IncomingMessage, response: ServerResponse, calls: ControlCalls): Promise<void> {
  try {
    const call = calls[`${request.method} ${request.url}`];
    if (call === undefined) throw new Error("no such call");
    const text = await readBody(request);
    const answered = (await call(text === "" ? undefined : JSON.parse(text), text)) ?? {};
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answered));
  } catch (error) {
    response
      .writeHead(500, { "content-type": "text/plain" })
      .end(error instanceof Error ? error.message : String(error));
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > largestBodyBytes) throw new Error("body too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
