import type { Socket } from "node:net";
import { Refused } from "../features/context.ts";
import { answerTo } from "./errors.ts";
import { securityHeaders } from "./security-headers.ts";

/** Refuses input that is not HTTP, or has too many headers. No reply object exists yet, so it writes to the socket. */
export function refuseRaw(error: NodeJS.ErrnoException, socket: Socket): void {
  // Browsers open connections ahead. One that was never used gets no answer: it could meet the first request on its way.
  const isUnused = error.code === "ERR_HTTP_REQUEST_TIMEOUT" && socket.bytesRead === 0;
  if (isUnused || error.code === "ECONNRESET" || !socket.writable) return void socket.destroy();
  const { status, body } = answerTo(
    error.code === "HPE_HEADER_OVERFLOW"
      ? new Refused("payload_too_large")
      : new Refused("invalid_request", { error: "This is not a valid HTTP request." }),
  );
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${status === 413 ? "Payload Too Large" : "Bad Request"}`,
    "content-type: application/json; charset=utf-8",
  ];
  socket.end(
    [
      ...head,
      `content-length: ${Buffer.byteLength(text)}`,
      ...Object.entries(securityHeaders).map(([name, value]) => `${name}: ${value}`),
      "connection: close",
      "",
      text,
    ].join("\r\n"),
  );
}
