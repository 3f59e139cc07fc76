import { get } from "node:http";
import type { InstanceAddress } from "../ports/runtime.ts";

/** What one request to an application found. */
export type ProbeResult =
  | { readonly outcome: "healthy" }
  | { readonly outcome: "refused" }
  | { readonly outcome: "timeout" }
  | { readonly outcome: "broken"; readonly detail: string }
  | { readonly outcome: "status"; readonly status: number };

export interface Probe {
  readonly address: InstanceAddress;
  readonly hostname: string;
  /** Null: any answer below 500 will do. */
  readonly path: string | null;
  readonly timeoutMs: number;
}

/** Asks the application once, over a connection of its own, without following redirects. */
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
      response.resume();
      end(isHealthy(status, probe.path) ? { outcome: "healthy" } : { outcome: "status", status });
    });
    request.on("error", (error: NodeJS.ErrnoException) => {
      const unreachable = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOENT"].includes(error.code ?? "");
      end(unreachable ? { outcome: "refused" } : { outcome: "broken", detail: error.code ?? error.message });
    });
  });
}

/** With a health path 200 to 399 is healthy; without one anything below 500. */
function isHealthy(status: number, path: string | null): boolean {
  return path === null ? status > 0 && status < 500 : status >= 200 && status < 400;
}
