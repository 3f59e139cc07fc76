import { join } from "node:path";
import { runFolder } from "../../kit/run-folder.ts";
import type { HaproxyEdgeOptions } from "./haproxy-edge-options.ts";
import { HaproxyProcess } from "./haproxy-process.ts";
import { keptPort } from "./kept-port.ts";

/** Fills in what the options leave open; ports of 0 stay the same for the life of the state folder. */
export async function prepareHaproxy(options: HaproxyEdgeOptions, probe_key: string): Promise<HaproxyProcess> {
  const { stateDir, haproxyBin, setpriv, uid, log, listenHost, listenPort, listenTlsPort } = options;
  const settings = {
    listen_host: listenHost,
    listen_port: listenPort === 0 ? await keptPort(stateDir, "port", listenHost) : listenPort,
    listen_tls_port: listenTlsPort === 0 ? await keptPort(stateDir, "tls-port", listenHost) : listenTlsPort,
    // The parent folder belongs to root; this one belongs to HAProxy's user.
    run_dir: join(runFolder(stateDir), "haproxy"),
    upstream_timeout_ms: options.upstreamTimeoutMs ?? 300_000,
    busy_above_per_second: options.busyAbovePerSecond ?? 100,
    drain_limit_ms: options.drainLimitMs ?? 3_600_000,
    max_body_bytes: options.maxBodyBytes ?? 0,
    ...{ probe_key, trusted_proxies: options.trustedProxies ?? [] },
  };
  const isRoot = process.getuid?.() === 0;
  const programs = { haproxy: haproxyBin, setpriv: setpriv ?? null, uid: isRoot ? (uid ?? null) : null };
  return new HaproxyProcess(settings, programs, stateDir, log);
}
