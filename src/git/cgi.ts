import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";

const longestHeadBytes = 64 * 1024;

/**
 * Copies a CGI program's response (RFC 3875 §6) to an HTTP response with back-pressure, and leaves the HTTP response open at the end.
 * Resolves to false if the program ended before a complete header; then nothing has been sent.
 */
export async function copyCgiAnswer(output: Readable, res: ServerResponse): Promise<boolean> {
  let head = Buffer.alloc(0);
  for await (const chunk of output as AsyncIterable<Buffer>) {
    if (res.headersSent) {
      await write(res, chunk);
      continue;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0 && head.length > longestHeadBytes) break;
    if (end < 0) continue;
    sendHead(res, head.toString("latin1", 0, end));
    await write(res, head.subarray(end + 4));
  }
  return res.headersSent;
}

function sendHead(res: ServerResponse, head: string): void {
  let status = 200;
  for (const line of head.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === "status") status = Number.parseInt(value, 10);
    else if (colon > 0) res.setHeader(name, value);
  }
  res.writeHead(status);
  res.flushHeaders();
}

/** After the client has disconnected, the rest is read and dropped, so that the program never blocks. */
async function write(res: ServerResponse, chunk: Buffer): Promise<void> {
  if (chunk.length === 0 || res.destroyed || res.write(chunk)) return;
  await new Promise<void>((done) => {
    const go = () => {
      res.off("drain", go);
      res.off("close", go);
      done();
    };
    res.on("drain", go);
    res.on("close", go);
  });
}
