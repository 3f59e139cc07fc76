import { get, type IncomingMessage } from "node:http";
import type { PageLook } from "../../features/metrics/metrics.ts";
import type { Dns } from "../../ports/dns.ts";
import type { EdgeEntrance } from "../../ports/edge.ts";

/** A first page, and the way to it. */
export interface Page {
  readonly hostname: string;
  readonly entrance: EdgeEntrance;
  readonly timeoutMs: number;
}

// A page that goes on for ever must not keep us; what is beyond this is not the page's first view.
const mostBytes = 4 * 1024 * 1024;

/**
 * Asks for an application's first page through the edge, as a visitor would, over a connection of its own, and takes the time of each
 * phase. Redirects are an answer and not followed. Never rejects: what goes wrong is what was seen.
 */
export async function probePage(page: Page, dns: Pick<Dns, "addresses">): Promise<PageLook> {
  const dns_ms = await timeLookup(page.hostname, dns);
  return { ...(await timeRequest(page)), dns_ms };
}

/** Null for a name that no DNS has: those below `localhost`, and those that are not found. */
async function timeLookup(hostname: string, dns: Pick<Dns, "addresses">): Promise<number | null> {
  if (hostname === "localhost" || hostname.endsWith(".localhost")) return null;
  const begunAtMs = performance.now();
  const answer = await dns.addresses(hostname).catch(() => ({ outcome: "unavailable" as const }));
  return answer.outcome === "found" ? performance.now() - begunAtMs : null;
}

function timeRequest({ hostname, entrance, timeoutMs }: Page): Promise<Omit<PageLook, "dns_ms">> {
  return new Promise((resolve) => {
    const begunAtMs = performance.now();
    const since = () => performance.now() - begunAtMs;
    let connectedMs: number | null = null;
    let firstByteMs: number | null = null;
    let status: number | null = null;
    const { host, port, headers } = entrance;
    const own = { host: hostname, "user-agent": "berth-probe/1.0", accept: "text/html,*/*;q=0.8" };
    const request = get({ host, port, path: "/", headers: { ...own, ...headers }, agent: false });
    const timer = setTimeout(() => end("timeout"), timeoutMs);
    let ended = false;
    function end(failure: string | null): void {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      const total_ms = failure === null || failure === "server_error" ? since() : null;
      request.destroy();
      const first_byte_ms = firstByteMs === null ? null : firstByteMs - (connectedMs ?? 0);
      resolve({ http_status: status, failure, connect_ms: connectedMs, first_byte_ms, total_ms });
    }
    request.on("socket", (socket) => socket.once("connect", () => (connectedMs = since())));
    request.on("error", (error: NodeJS.ErrnoException) => end(error.code === "ECONNREFUSED" ? "refused" : "broken"));
    request.on("response", (response: IncomingMessage) => {
      firstByteMs = since();
      status = response.statusCode ?? 0;
      let bytes = 0;
      const done = () => end((status ?? 0) >= 500 ? "server_error" : null);
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > mostBytes) done();
      });
      response.on("end", done);
      response.on("error", () => end("broken"));
    });
  });
}
