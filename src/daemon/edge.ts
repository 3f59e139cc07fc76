import { createHaproxyEdge } from "../adapters/edge-haproxy/haproxy-edge.ts";
import { readHaproxyRecord } from "../adapters/edge-haproxy/haproxy-process.ts";
import type { Log } from "../kit/log.ts";
import { isAlive } from "../kit/processes.ts";
import type { Edge } from "../ports/edge.ts";
import { pathsIn, type Config } from "./config.ts";
import { hasHttps } from "./certificate-settings.ts";
import { earlierEdgeProcesses, endEarlierEdge } from "./earlier-edge.ts";
import type { MachineParts } from "./setup/machine.ts";
import { StartRefused } from "./start-refused.ts";

/** What the edge depends on. */
export interface EdgeFoundation {
  readonly config: Config;
  readonly parts: Pick<MachineParts, "haproxy" | "setpriv" | "missing">;
  readonly log: Log;
}

const mib = 1024 * 1024;

/** Creates the edge. Throws `StartRefused` if this machine has no HAProxy. */
export function createEdge({ config, parts, log }: EdgeFoundation): Edge {
  if (config.edge !== null)
    log.warn({}, "BERTH_EDGE has no effect: HAProxy is the only edge. Remove the setting; Berth 2.0 refuses it.");
  return createHaproxyEdge({
    haproxyBin: requireHaproxy(config, parts),
    listenHost: config.listen,
    listenPort: config.edgePort,
    listenTlsPort: hasHttps(config) ? config.edgeTlsPort : null,
    stateDir: pathsIn(config.dataDir).haproxy,
    uid: config.uidBase,
    setpriv: parts.setpriv,
    maxBodyBytes: config.maxBodyMib * mib,
    trustedProxies: config.trustedProxies,
    freePorts: () => endEarlierEdge(pathsIn(config.dataDir).edge, edgePortsOf(config), { host: config.listen, log }),
    log,
  });
}

function requireHaproxy({ haproxy: named }: Config, { haproxy, missing }: EdgeFoundation["parts"]): string {
  if (haproxy !== null) return haproxy;
  if (named !== null)
    throw new StartRefused(
      `BERTH_HAPROXY=${named} is not a HAProxy 2.6 or newer that this user can run. Name another one, or remove the setting.`,
    );
  const command = missing.find(({ part }) => part.startsWith("HAProxy"))?.command ?? "apt-get install haproxy";
  throw new StartRefused(
    `Berth serves applications with HAProxy 2.6 or newer, which was not found on this machine and could not be fetched. Run: ${command}. Or set BERTH_HAPROXY to the path of one.`,
  );
}

/** Returns whether an edge of this data folder already listens on the edge port. */
export function edgeListens(config: Config): boolean {
  const { edge, haproxy } = pathsIn(config.dataDir);
  const record = readHaproxyRecord(haproxy);
  const isHaproxy = record?.listen_port === config.edgePort && isAlive(record.identity);
  return isHaproxy || earlierEdgeProcesses(edge).length > 0;
}

/** Returns the ports that visitors connect to. */
export function edgePortsOf(config: Config): readonly number[] {
  return [config.edgePort, ...(hasHttps(config) ? [config.edgeTlsPort] : [])];
}
