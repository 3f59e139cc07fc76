import { unlessStatus, type DockerApi } from "../kit/docker-api.ts";
import { listeningPorts } from "../kit/listening-ports.ts";
import type { InstanceKey, InstanceUsage, ListeningPort } from "../ports/runtime.ts";
import { processesIn, readContainer } from "./containers.ts";

interface ContainerStats {
  readonly memory_stats?: { readonly usage?: number; readonly stats?: Readonly<Record<string, number>> };
  readonly cpu_stats: { readonly cpu_usage: { readonly total_usage: number } };
  readonly pids_stats: { readonly current?: number };
}

/** Reads what a container uses; undefined once it has stopped. */
export async function readUsage(
  api: DockerApi,
  id: string,
): Promise<Omit<InstanceUsage, keyof InstanceKey> | undefined> {
  const query = { stream: false, "one-shot": true };
  const stats = await unlessStatus(api.call<ContainerStats>({ path: `/containers/${id}/stats`, query }), 404);
  if (stats?.memory_stats?.usage === undefined) return undefined;
  const { usage, stats: kinds } = stats.memory_stats;
  // Inactive page cache does not count: the kernel frees it on demand.
  const cached = kinds?.["total_inactive_file"] ?? kinds?.["inactive_file"] ?? 0;
  return {
    memory_bytes: Math.max(0, usage - cached),
    cpu_seconds: stats.cpu_stats.cpu_usage.total_usage / 1e9,
    processes: stats.pids_stats.current ?? 0,
  };
}

export async function listeningIn(api: DockerApi, ids: readonly string[]): Promise<readonly ListeningPort[]> {
  const found = await Promise.all(ids.map((id) => readContainer(api, id)));
  return listeningPorts(found.flatMap(({ State: { Pid: pid } }) => processesIn(pid).map((process) => process.pid)));
}
