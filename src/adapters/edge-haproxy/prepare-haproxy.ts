import { join } from "node:path";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { runFolder } from "../../kit/run-folder.ts";
import type { HaproxyEdgeOptions } from "./haproxy-edge-options.ts";
import { HaproxyProcess } from "./haproxy-process.ts";
import { keptText } from "../../kit/whole-file.ts";

/** Fills in what the options leave open; ports of 0 stay the same for the life of the state folder. */
export async function prepareHaproxy(options: HaproxyEdgeOptions, probe_key: string): Promise<HaproxyProcess> {
  const { stateDir, haproxyBin, setpriv, uid, log, listenHost, listenPort, listenTlsPort } = options;
  const settings = {
    listen_host: listenHost,
    listen_port: listenPort === 0 ? await keptPort(stateDir, "port") : listenPort,
    listen_tls_port: listenTlsPort === 0 ? await keptPort(stateDir, "tls-port") : listenTlsPort,
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

/** Returns a free port, chosen once per state folder. */
async function keptPort(stateDir: string, name: string): Promise<number> {
  const free = await freePort();
  return Number(keptText(join(stateDir, name), () => `${free}`));
}

// Between the ports of databases and those of outgoing connections, one of which could have the port whenever HAProxy starts again.
const [firstPort, portCount] = [31_000, 1768];

async function freePort(): Promise<number> {
  const port = firstPort + randomInt(portCount);
  const server = createServer().listen(port);
  try {
    await once(server, "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return freePort();
    throw error;
  }
  await new Promise((resolve) => server.close(resolve));
  return port;
}
