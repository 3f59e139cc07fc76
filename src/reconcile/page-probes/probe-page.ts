import { get, type IncomingMessage } from "node:http";
import { get as secureGet } from "node:https";
import type { PageProbeResult } from "../../features/metrics/metrics.ts";
import type { Dns } from "../../ports/dns.ts";
import type { EdgeEntrance } from "../../ports/edge.ts";

/** An application's first page, and how to reach it. */
export interface Page {
  readonly hostname: string;
  readonly entrance: EdgeEntrance;
  /** Whether the edge has a certificate for the hostname, so that visitors see the page over HTTPS. */
  readonly overHttps: boolean;
  readonly timeoutMs: number;
}

// Reading stops here, because a page may never end; the rest is not part of the page's first view.
const mostBytes = 4 * 1024 * 1024;

/**
 * Requests an application's first page through the edge, as a visitor would, over a new connection, and measures each phase. Redirects
 * count as responses and are not followed. Never rejects: errors are part of the result.
 */
export async function probePage(page: Page, dns: Pick<Dns, "addresses">): Promise<PageProbeResult> {
  const dns_ms = await timeLookup(page.hostname, dns);
  return { ...(await timeRequest(page)), dns_ms };
}

/** Resolves to null for names without DNS: those below `localhost`, and those that are not found. */
async function timeLookup(hostname: string, dns: Pick<Dns, "addresses">): Promise<number | null> {
  if (hostname === "localhost" || hostname.endsWith(".localhost")) return null;
  const begunAtMs = performance.now();
  const answer = await dns.addresses(hostname).catch(() => ({ outcome: "unavailable" as const }));
  return answer.outcome === "found" ? performance.now() - begunAtMs : null;
}

function timeRequest({ hostname, entrance, overHttps, timeoutMs }: Page): Promise<Omit<PageProbeResult, "dns_ms">> {
  return new Promise((resolve) => {
    const begunAtMs = performance.now();
    const since = () => performance.now() - begunAtMs;
    let connectedMs: number | null = null;
    let securedMs: number | null = null;
    let firstByteMs: number | null = null;
    let status: number | null = null;
    const { host, headers } = entrance;
    const own = { host: hostname, "user-agent": "berth-probe/1.0", accept: "text/html,*/*;q=0.8" };
    const asked = { host, path: "/", headers: { ...own, ...headers }, agent: false } as const;
    // Connects to the edge by address. Certificates are not verified here: their status is reported separately.
    const secure = { port: entrance.tls_port, servername: hostname, rejectUnauthorized: false };
    const request = overHttps ? secureGet({ ...asked, ...secure }) : get({ ...asked, port: entrance.port });
    const timer = setTimeout(() => end("timeout"), timeoutMs);
    let ended = false;
    function end(failure: string | null): void {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      const total_ms = failure === null || failure === "server_error" ? since() : null;
      request.destroy();
      const tls_ms = securedMs === null ? null : securedMs - (connectedMs ?? 0);
      const first_byte_ms = firstByteMs === null ? null : firstByteMs - (securedMs ?? connectedMs ?? 0);
      resolve({ http_status: status, failure, connect_ms: connectedMs, tls_ms, first_byte_ms, total_ms });
    }
    request.on("socket", (socket) => {
      socket.once("connect", () => (connectedMs = since()));
      socket.once("secureConnect", () => (securedMs = since()));
    });
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
