// Until 2.0: Berth had an edge of its own beside HAProxy, a Node.js process that outlived the control plane.
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../kit/log.ts";
import { identify, processIds, readProcessFile, sendSignal, type ProcessIdentity } from "../kit/processes.ts";
import { until } from "../kit/until.ts";
import { tryPort } from "./ports-free.ts";

const drainMs = 10_000;

/** Returns the processes of the built-in edge with this state folder: the one that listens, and those that it replaced. */
export function earlierEdgeProcesses(stateDir: string): readonly ProcessIdentity[] {
  const settings = join(stateDir, "settings.json");
  const isEdge = (pid: number) => readProcessFile(pid, "cmdline").split("\0").includes(settings);
  return processIds().flatMap((pid) => (isEdge(pid) ? (identify(pid) ?? []) : []));
}

/**
 * Makes a built-in edge of an earlier version release its ports, so that HAProxy can listen there at once. It finishes its open requests
 * within ten seconds. Its folder, which holds private keys, is removed.
 */
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
