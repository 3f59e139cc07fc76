import { get, type IncomingHttpHeaders } from "node:http";
import type { InstanceAddress, InstanceKey, Runtime } from "../ports/runtime.ts";

/** The result of one request to an application. */
export type ProbeResult =
  | { readonly outcome: "healthy" }
  | { readonly outcome: "refused" }
  | { readonly outcome: "timeout" }
  | { readonly outcome: "broken" | "check_failed"; readonly detail: string }
  /** `said`: the beginning of the first line of an answer without markup, or "". */
  | { readonly outcome: "status"; readonly status: number; readonly said: string };

export interface Probe {
  readonly address: InstanceAddress;
  readonly hostname: string;
  /** Null: any response below 500 is healthy. */
  readonly path: string | null;
  readonly timeoutMs: number;
}

/** Sends the application one request, over a new connection, without following redirects. */
export function probeHealth(probe: Probe): Promise<ProbeResult> {
  return new Promise((resolve) => {
    const request = get({
      host: probe.address.host,
      port: probe.address.port,
      path: probe.path ?? "/",
      headers: { host: probe.hostname, "user-agent": "berth-health/1.0" },
      agent: false,
    });
    const timer = setTimeout(() => end({ outcome: "timeout" }), probe.timeoutMs);
    function end(found: ProbeResult): void {
      clearTimeout(timer);
      request.destroy();
      resolve(found);
    }
    request.on("response", (response) => {
      const status = response.statusCode ?? 0;
      let text = "";
      const refuse = () => end({ outcome: "status", status, said: firstLine(text, response.headers) });
      if (isHealthy(status, probe.path)) return end({ outcome: "healthy" });
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        if (text.length >= mostCharacters || text.includes("\n")) refuse();
      });
      // The status alone tells enough if the answer breaks off.
      response.on("end", refuse).on("error", refuse);
    });
    request.on("error", (error: NodeJS.ErrnoException) => {
      const unreachable = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOENT"].includes(error.code ?? "");
      end(unreachable ? { outcome: "refused" } : { outcome: "broken", detail: error.code ?? error.message });
    });
  });
}

const mostCharacters = 200;

function firstLine(text: string, { "content-type": type = "text/plain" }: IncomingHttpHeaders): string {
  if (!/^(?:text\/plain|application\/(?:[\w.]+\+)?json)\b/.test(type)) return "";
  return (text.split(/[\r\n]/)[0] ?? "").slice(0, mostCharacters).trim();
}

/** Probes the application; then, unless a health path is set, also runs its image's own health check. */
export async function probeInstance(
  runtime: Pick<Runtime, "checkHealth">,
  instance: InstanceKey,
  probe: Probe,
): Promise<ProbeResult> {
  const found = await probeHealth(probe);
  if (found.outcome !== "healthy" || probe.path !== null) return found;
  const own = await runtime.checkHealth(instance);
  return own.outcome === "failed" ? { outcome: "check_failed", detail: own.detail } : found;
}

/** With a health path, 200 to 399 is healthy; without one, anything below 500. */
function isHealthy(status: number, path: string | null): boolean {
  return path === null ? status > 0 && status < 500 : status >= 200 && status < 400;
}
