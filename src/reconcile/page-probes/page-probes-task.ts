import {
  addPageProbe,
  schedulePageProbes,
  claimDuePageProbes,
  type DuePageProbe,
  type PageProbeResult,
} from "../../features/metrics/metrics.ts";
import type { EdgeEntrance } from "../../ports/edge.ts";
import type { Task, Platform } from "../platform.ts";
import { get, type IncomingMessage } from "node:http";
import { get as secureGet } from "node:https";
import type { Dns } from "../../ports/dns.ts";

const periodMs = 2000;
const enlistEveryMs = 15_000;
const atOnce = 64;

/** Requests the first page of every serving application about once per period, spread evenly over it. */
export function pageProbesTask(platform: Platform): Task {
  const running = new Set<Promise<void>>();
  let enlistedAtMs = -Infinity;
  const { everySeconds } = platform.settings.metrics.pageLooks;

  async function begin(): Promise<number> {
    if (performance.now() - enlistedAtMs > enlistEveryMs) {
      await schedulePageProbes(platform.db, everySeconds);
      enlistedAtMs = performance.now();
    }
    const entrance = await platform.ports.edge.entrance();
    if (entrance === null || running.size >= atOnce) return 0;
    const due = await claimDuePageProbes(platform.db, { everySeconds, limit: atOnce - running.size });
    for (const project of due) {
      const probing: Promise<void> = probe(platform, project, entrance).finally(() => running.delete(probing));
      running.add(probing);
    }
    return due.length;
  }

  return {
    name: "page-probes",
    periodMs,
    topics: [],
    async run() {
      if (everySeconds === 0) return { detail: "switched off", againMs: 60_000 };
      const begun = await begin();
      return { detail: `${running.size} under way`, againMs: begun > 0 ? 250 : periodMs };
    },
    async settle() {
      await Promise.all(running);
    },
  };
}

async function probe(platform: Platform, project: DuePageProbe, entrance: EdgeEntrance): Promise<void> {
  const { timeoutMs } = platform.settings.metrics.pageLooks;
  const overHttps = entrance.tls_port !== null && platform.httpsNames.has(project.hostname);
  try {
    const result = await probePage({ hostname: project.hostname, entrance, overHttps, timeoutMs }, platform.ports.dns);
    await addPageProbe(platform.db, project, result, platform.clock.now());
  } catch (error) {
    platform.log.warn({ err: error, project: project.project_id }, "could not store the result of a page probe");
  }
}

/** An application's first page, and how to reach it. */
interface Page {
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
async function probePage(page: Page, dns: Pick<Dns, "addresses">): Promise<PageProbeResult> {
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
