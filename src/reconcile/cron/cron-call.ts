import { request, type IncomingMessage } from "node:http";
import { limits } from "../../contract/limits.ts";
import type { InstanceAddress } from "../../ports/runtime.ts";

export interface CronCall {
  /** The ready replicas in the order to try them; the next one is tried only if nothing was sent to the one before. */
  readonly targets: readonly InstanceAddress[];
  /** The request target, sent unchanged. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Aborts the call; its outcome is then unknown. */
  readonly signal: AbortSignal;
}

/** The outcome of a call. A redirect counts like any other response below 400. */
export interface CronAnswer {
  readonly status: "succeeded" | "failed" | "timeout" | "unknown";
  readonly reason: "no_ready_replica" | "unreachable" | "connection_lost" | "invalid_answer" | "interrupted" | null;
  readonly http_status: number | null;
  /** The beginning of the response body: more than is stored, so that a secret in it can be redacted as a whole. */
  readonly excerpt: Buffer;
}

/** Calls the application once. Never rejects, and delivers at most one request. */
export async function callCron(call: CronCall): Promise<CronAnswer> {
  const end = performance.now() + call.timeoutMs;
  let last: CronAnswer = { status: "failed", reason: "no_ready_replica", http_status: null, excerpt: Buffer.alloc(0) };
  for (const target of call.targets) {
    last = await callOne(call, target, end - performance.now());
    if (last.reason !== "unreachable") break;
  }
  return last;
}

// Reading stops here, because a longer body may never end. What follows the excerpt is read only to see the end.
const mostBodyBytes = 16 * 1024 * 1024;
const excerptBytes = 2 * limits.cron_response_bytes;

function callOne(call: CronCall, target: InstanceAddress, timeoutMs: number): Promise<CronAnswer> {
  return new Promise((resolve) => {
    const seen = { connected: false, status: null as number | null, bytes: 0, kept: [] as Buffer[] };
    // Each call opens a new connection: a kept-alive one may be closing, and a request sent on it could not be retried safely.
    const outgoing = request({
      agent: false,
      host: target.host,
      port: target.port,
      path: call.path,
      headers: call.headers,
    });
    const timer = setTimeout(() => end("timeout", null), Math.max(0, timeoutMs));
    const stop = () => end("unknown", "interrupted");
    function end(status: CronAnswer["status"], reason: CronAnswer["reason"]): void {
      clearTimeout(timer);
      call.signal.removeEventListener("abort", stop);
      outgoing.destroy();
      const excerpt = Buffer.concat(seen.kept).subarray(0, excerptBytes);
      resolve({ status, reason, http_status: seen.status, excerpt });
    }
    outgoing.on("socket", (socket) => socket.once("connect", () => (seen.connected = true)));
    outgoing.on("response", (response) => {
      seen.status = response.statusCode ?? 0;
      read(response, seen, () => end(seen.status !== null && seen.status < 400 ? "succeeded" : "failed", null));
      response.on("error", () => {}).on("close", () => end("failed", "connection_lost"));
    });
    const broken = (code: string) => end("failed", seen.connected ? reasonOf(code) : "unreachable");
    outgoing.on("error", (error: NodeJS.ErrnoException) => broken(error.code ?? ""));
    // A protocol switch closes the connection without an error or a response. After a response, the end of its body decides.
    outgoing.on("close", () => seen.status ?? broken(""));
    call.signal.addEventListener("abort", stop);
    if (call.signal.aborted) return stop();
    return outgoing.end();
  });
}

function read(response: IncomingMessage, seen: { bytes: number; kept: Buffer[] }, end: () => void): void {
  response.on("data", (chunk: Buffer) => {
    if (seen.bytes < excerptBytes) seen.kept.push(chunk);
    seen.bytes += chunk.length;
    if (seen.bytes > mostBodyBytes) end();
  });
  response.on("end", end);
}

function reasonOf(code: string): "connection_lost" | "invalid_answer" {
  return code.startsWith("HPE_") ? "invalid_answer" : "connection_lost";
}
