import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createHaproxyEdge } from "../adapters/edge-haproxy/haproxy-edge.ts";
import { readHaproxyRecord } from "../adapters/edge-haproxy/haproxy-process.ts";
import type { Log } from "../kit/log.ts";
import { identify, isAlive, processIds, readProcessFile, sendSignal, type ProcessIdentity } from "../kit/processes.ts";
import { until } from "../kit/until.ts";
import type { Edge } from "../ports/edge.ts";
import { hasHttps } from "./certificate-settings.ts";
import { StartRefused, pathsIn, type Config } from "./config.ts";
import type { MachineParts } from "./setup/machine.ts";

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

/** Throws `StartRefused`, before anything is changed, if another program than an earlier start's edge uses one of the ports. */
export async function requireFreePorts(config: Config, edgeListens: boolean): Promise<void> {
  const opensEdge = config.roles.includes("edge") && !edgeListens;
  const wanted = [
    { port: config.httpPort, name: "BERTH_HTTP_PORT" },
    { port: config.roles.includes("git") ? config.sshPort : 0, name: "BERTH_SSH_PORT" },
    { port: opensEdge ? config.edgePort : 0, name: "BERTH_EDGE_PORT" },
    { port: opensEdge && hasHttps(config) ? config.edgeTlsPort : 0, name: "BERTH_EDGE_TLS_PORT" },
  ];
  for (const { port, name } of wanted) {
    const trouble = port === 0 ? undefined : await tryPort(config.listen, port);
    if (trouble === "EADDRINUSE")
      throw new StartRefused(
        `Port ${port} on ${config.listen} is in use by another program. Stop it, or set ${name} to another port.`,
      );
    if (trouble === "EACCES")
      throw new StartRefused(`This user may not open port ${port}. Set ${name} to a port above 1023.`);
    if (trouble === "EADDRNOTAVAIL")
      throw new StartRefused(
        `This machine has no address ${config.listen}. Set BERTH_LISTEN to an address of this machine.`,
      );
  }
}

/** Returns the code of the error that listening on the port causes, or undefined. */
export function tryPort(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

const drainMs = 10_000;

/** Returns the processes of the built-in edge with this state folder: the one that listens, and those that it replaced. */
export function earlierEdgeProcesses(stateDir: string): readonly ProcessIdentity[] {
  const settings = join(stateDir, "settings.json");
  const isEdge = (pid: number) => readProcessFile(pid, "cmdline").split("\0").includes(settings);
  return processIds().flatMap((pid) => (isEdge(pid) ? (identify(pid) ?? []) : []));
}

/** Makes a built-in edge of an earlier version release its ports within ten seconds, and removes its folder with the private keys. */
export async function endEarlierEdge(
  stateDir: string,
  ports: readonly number[],
  { host, log }: { readonly host: string; readonly log: Log },
): Promise<void> {
  const found = earlierEdgeProcesses(stateDir);
  if (found.length > 0) {
    log.info({ pids: found.map(({ pid }) => pid) }, "HAProxy replaces the built-in edge of an earlier version.");
    for (const each of found) sendSignal(each, "SIGTERM");
    const areFree = async () => {
      const troubles = await Promise.all(ports.map((port) => tryPort(host, port)));
      return troubles.includes("EADDRINUSE") ? undefined : true;
    };
    const kill = () => found.forEach((each) => sendSignal(each, "SIGKILL"));
    if ((await until(areFree, { timeoutMs: 3000, atMostMs: 20 })) === undefined) {
      kill();
      await until(areFree, { timeoutMs: 3000, atMostMs: 20 });
    } else setTimeout(kill, drainMs).unref();
  }
  rmSync(stateDir, { recursive: true, force: true });
}
