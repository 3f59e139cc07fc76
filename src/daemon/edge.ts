import { createBuiltinEdge } from "../adapters/edge-builtin/builtin-edge.ts";
import { readRecord } from "../adapters/edge-builtin/edge-record.ts";
import { createHaproxyEdge } from "../adapters/edge-haproxy/haproxy-edge.ts";
import { readHaproxyRecord } from "../adapters/edge-haproxy/haproxy-process.ts";
import type { Log } from "../kit/log.ts";
import { isAlive } from "../kit/processes.ts";
import type { Edge } from "../ports/edge.ts";
import { pathsIn, type Config } from "./config.ts";
import { hasHttps } from "./certificate-settings.ts";
import type { MachineParts } from "./setup/machine.ts";
import { StartRefused } from "./start-refused.ts";

/** What the choice of the edge depends on. */
export interface EdgeFoundation {
  readonly config: Config;
  readonly parts: Pick<MachineParts, "haproxy" | "setpriv">;
  readonly log: Log;
}

/**
 * Creates the edge that `BERTH_EDGE` or this machine calls for. An edge of the other kind that an earlier start left running is stopped
 * first, which frees the ports.
 */
export async function createEdge(foundation: EdgeFoundation): Promise<Edge> {
  const kind = edgeKind(foundation);
  const other = kind === "haproxy" ? builtin(foundation) : haproxy(foundation);
  if (isRunning(foundation.config, other.kind)) {
    foundation.log.warn({ edge: other.kind }, "Berth stops this edge because another one replaces it.");
    await other.stop(handOverMs);
  }
  return kind === "haproxy" ? haproxy(foundation) : builtin(foundation);
}

const handOverMs = 2000;
const mib = 1024 * 1024;

/**
 * Returns which edge carries the traffic: `BERTH_EDGE`, else HAProxy if it is installed and Berth runs as root. Throws `StartRefused` if
 * `BERTH_EDGE` names HAProxy and it is missing.
 */
export function edgeKind({ config, parts }: Pick<EdgeFoundation, "config" | "parts">): Edge["kind"] {
  if (config.edge === "haproxy" && parts.haproxy === null)
    throw new StartRefused(
      "BERTH_EDGE=haproxy, but HAProxy 2.6 or later was not found on this machine. Install it: apt-get install haproxy",
    );
  if (config.edge !== null) return config.edge;
  return parts.haproxy !== null && config.isRoot ? "haproxy" : "builtin";
}

/** Returns whether an edge of this data folder already listens on the edge port. */
export function edgeListens(config: Config): boolean {
  const { edge, haproxy: haproxyDir } = pathsIn(config.dataDir);
  const records = [readRecord(edge), readHaproxyRecord(haproxyDir)];
  return records.some((record) => record?.listen_port === config.edgePort && isAlive(record.identity));
}

/** Returns the ports that visitors connect to. */
export function edgePortsOf(config: Config): readonly number[] {
  return [config.edgePort, ...(hasHttps(config) ? [config.edgeTlsPort] : [])];
}

function isRunning(config: Config, kind: Edge["kind"]): boolean {
  const { edge, haproxy: haproxyDir } = pathsIn(config.dataDir);
  const record = kind === "builtin" ? readRecord(edge) : readHaproxyRecord(haproxyDir);
  return record !== undefined && isAlive(record.identity);
}

function builtin({ config, parts, log }: EdgeFoundation): Edge {
  return createBuiltinEdge({
    listenHost: config.listen,
    listenPort: config.edgePort,
    listenTlsPort: hasHttps(config) ? config.edgeTlsPort : null,
    stateDir: pathsIn(config.dataDir).edge,
    nodeBin: process.execPath,
    // Projects are numbered from 1, so no project uses this uid.
    uid: config.uidBase,
    setpriv: parts.setpriv,
    maxBodyBytes: config.maxBodyMib * mib,
    log,
  });
}

function haproxy({ config, parts, log }: EdgeFoundation): Edge {
  return createHaproxyEdge({
    haproxyBin: parts.haproxy ?? "haproxy",
    listenHost: config.listen,
    listenPort: config.edgePort,
    listenTlsPort: hasHttps(config) ? config.edgeTlsPort : null,
    stateDir: pathsIn(config.dataDir).haproxy,
    uid: config.uidBase,
    setpriv: parts.setpriv,
    maxBodyBytes: config.maxBodyMib * mib,
    trustedProxies: config.trustedProxies,
    log,
  });
}
