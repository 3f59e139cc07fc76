import type { ServerResponse } from "node:http";
import type { Readable, Writable } from "node:stream";
import type { PacketMap } from "./packets.ts";

const longestHeadBytes = 64 * 1024;

/**
 * Copies a CGI program's response (RFC 3875 §6) to an HTTP response with back-pressure, and leaves the HTTP response open at the end.
 * Resolves to false if the program ended before a complete header; then nothing has been sent.
 */
export async function copyCgiAnswer(output: Readable, res: ServerResponse, report: PacketMap | null): Promise<boolean> {
  let head = Buffer.alloc(0);
  for await (const chunk of output as AsyncIterable<Buffer>) {
    if (res.headersSent) {
      await write(res, report?.map(chunk) ?? chunk);
      continue;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0 && head.length > longestHeadBytes) break;
    if (end < 0) continue;
    sendHead(res, head.toString("latin1", 0, end));
    const body = head.subarray(end + 4);
    await write(res, report?.map(body) ?? body);
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

/** Copies a program's output with back-pressure, and leaves `to` open at the end. */
export async function copyOutput(output: Readable, to: Writable, report: PacketMap | null): Promise<void> {
  for await (const chunk of output as AsyncIterable<Buffer>) await write(to, report?.map(chunk) ?? chunk);
}

/** After the client has disconnected, the rest is read and dropped, so that the program never blocks. */
async function write(res: Writable, chunk: Buffer): Promise<void> {
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
