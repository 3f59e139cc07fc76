import { setTimeout as sleep } from "node:timers/promises";
import {
  markReady,
  othersRun,
  releasedReplicas,
  takeOver,
  web,
  workloadId,
  type ProcessRow,
} from "../../features/deployments/deployments.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Workload } from "../../ports/runtime.ts";
import type { BuildLog } from "../build-log.ts";
import { probeInstance, type ProbeResult } from "../probe-health.ts";
import { startReplica } from "../start-replica.ts";
import { workloadOf } from "../workload.ts";
import { exitFailure, notServed, probeFailure, releaseFailure, whereItListens } from "./release-failures.ts";
import type { Taken } from "./taken.ts";

/** A release in progress: the context that its steps share. */
export interface Release extends Taken {
  /** The web process; all process types use its image and environment. */
  readonly workload: Workload;
  readonly processes: readonly ProcessRow[];
  readonly log: BuildLog;
  readonly signal: AbortSignal;
}

/**
 * Starts all process types: first those that may run beside the active deployment's; once they are healthy, those that must not run twice
 * replace the active deployment's. If a start fails, the active deployment's start again as soon as this deployment's have stopped.
 */
export async function startProcesses(release: Release): Promise<Failure | undefined> {
  const beside = release.processes.filter(({ overlap }) => overlap);
  const instead = release.processes.filter(({ overlap }) => !overlap);
  return (await start(release, beside)) ?? (await endOthers(release, instead)) ?? (await start(release, instead));
}

async function start(release: Release, processes: readonly ProcessRow[]): Promise<Failure | undefined> {
  const { platform, deployment, log } = release;
  const { org_id, id: deployment_id } = deployment;
  for (const { process, replicas } of processes) {
    if (replicas > 0) log.step(startText(process, replicas));
    const workload = await workloadOf(platform, deployment, process);
    const ordinals = Array.from({ length: replicas }, (_, ordinal) => ordinal);
    await Promise.all(
      ordinals.map((ordinal) => startReplica(platform, workload, { org_id, deployment_id, process, ordinal })),
    );
  }
  return processes.length === 0 ? undefined : awaitHealth(release, processes);
}

function startText(process: string, replicas: number): string {
  const count = replicas === 1 ? "1 replica" : `${replicas} replicas`;
  return process === web ? `Starting ${count}` : `Starting ${count} of ${process}`;
}

const endMarginMs = 30_000;
const endPollMs = 50;

/** Waits until the active deployment's replicas of these types have stopped (SIGTERM and the grace period), before new ones start. */
async function endOthers(release: Release, processes: readonly ProcessRow[]): Promise<Failure | undefined> {
  const { platform, deployment, lease, log, signal } = release;
  const types = processes.map(({ process }) => process);
  if (types.length === 0) return undefined;
  signal.throwIfAborted();
  const outcome = await platform.db.transaction().execute((tx) => takeOver(tx, lease, deployment));
  if (outcome === "lease_lost") throw new Error("the deployment was cancelled while it was being released");
  if (outcome !== "done") return notServed[outcome];
  if (await othersRun(platform.db, deployment, types))
    log.step(`Stopping ${types.join(", ")} of the previous deployment`);
  await platform.wakeups.send(platform.db, "apps", deployment.project_id);
  const endMs = Date.now() + platform.settings.stopGraceMs + endMarginMs;
  while (await othersRun(platform.db, deployment, types)) {
    signal.throwIfAborted();
    if (Date.now() > endMs)
      return releaseFailure(
        "boot",
        "platform_fault",
        `${types.join(", ")} of the previous deployment did not stop in time.`,
      );
    await sleep(endPollMs);
  }
  return undefined;
}

/** Waits until all replicas are healthy, within the time budget; fails if one exits. */
async function awaitHealth(release: Release, processes: readonly ProcessRow[]): Promise<Failure | undefined> {
  const { platform, deployment, signal } = release;
  const { everyMs, budgetMs } = platform.settings.health;
  const types = new Set(processes.map(({ process }) => process));
  const end = Date.now() + budgetMs;
  const results = new Map<string, ProbeResult>();
  const resultOf = ({ process, ordinal }: Released) => results.get(`${process}/${ordinal}`);
  const warn = warnAboutPorts(release);
  let pauseMs = 10;
  let replicas: readonly Released[] = [];
  while (!signal.aborted) {
    const all = await releasedReplicas(platform.db, deployment.id);
    const exited = all.find(({ state }) => state === "exited");
    if (exited) return exitFailure(exited);
    replicas = all.filter(({ process }) => types.has(process));
    const waiting = replicas.filter((replica) => resultOf(replica)?.outcome !== "healthy");
    await Promise.all(
      waiting.map(async (replica) =>
        results.set(`${replica.process}/${replica.ordinal}`, await probeReplica(release, replica)),
      ),
    );
    if (replicas.every((replica) => resultOf(replica)?.outcome === "healthy")) return unseenExit(release, types);
    if (Date.now() >= end) break;
    if (types.has(web) && [...results.values()].every(({ outcome }) => outcome === "refused")) await warn();
    // Poll fast at first: most applications are up in a fraction of `everyMs`.
    await sleep(pauseMs);
    pauseMs = Math.min(pauseMs * 1.15, everyMs);
  }
  return unhealthy(
    release,
    replicas.find((replica) => resultOf(replica)?.outcome !== "healthy"),
    resultOf,
  );
}

/** Checks once more for an exit: a process without requests may have exited since it was last observed. The web process has just answered. */
async function unseenExit({ platform, deployment }: Release, types: ReadonlySet<string>): Promise<Failure | undefined> {
  if (types.size === 1 && types.has(web)) return undefined;
  const ids = new Map([...types].map((process) => [workloadId({ deployment_id: deployment.id, process }), process]));
  const exited = (await platform.ports.runtime.observe()).find(
    ({ workload_id, state }) => state === "exited" && ids.has(workload_id),
  );
  if (exited === undefined) return undefined;
  const { code = null, out_of_memory = false } = exited.exit ?? {};
  return exitFailure({ process: ids.get(exited.workload_id) as string, exit_code: code, out_of_memory });
}

async function unhealthy(
  { platform, deployment, workload }: Release,
  replica: Released | undefined,
  resultOf: (replica: Released) => ProbeResult | undefined,
): Promise<Failure> {
  const worst = (replica && resultOf(replica)) ?? { outcome: "refused" as const };
  if (replica !== undefined && replica.process !== web)
    return releaseFailure("boot", "platform_fault", `The process ${replica.process} did not start in time.`);
  const isReached = worst.outcome !== "refused" && worst.outcome !== "broken";
  const listening = isReached ? [] : await platform.ports.runtime.listening(workload.id);
  const { budgetMs } = platform.settings.health;
  return probeFailure(worst, { port: workload.port ?? 0, path: deployment.health_path, budgetMs, listening });
}

const warnAfterMs = 5000;

/** Logs once where the application listens if nothing listens on the right port for some time, because the time budget may be long. */
function warnAboutPorts({ platform, workload, log }: Release): () => Promise<void> {
  let dueAtMs = Date.now() + warnAfterMs;
  return async () => {
    if (Date.now() < dueAtMs) return;
    dueAtMs = Date.now() + warnAfterMs;
    const listening = await platform.ports.runtime.listening(workload.id);
    if (listening.length === 0) return;
    log.detail(`Waiting for port ${workload.port}; ${whereItListens({ port: workload.port ?? 0, listening })}`);
    dueAtMs = Number.POSITIVE_INFINITY;
  };
}

type Released = Awaited<ReturnType<typeof releasedReplicas>>[number];

/** Probes a replica; one without requests is healthy once it has stayed up for `steadyMs`. */
async function probeReplica({ platform, deployment }: Release, replica: Released): Promise<ProbeResult> {
  const { process, ordinal, attempt } = replica;
  const result = process === web ? await probeWeb(platform, deployment, replica) : steadyResult(platform, replica);
  const key = { org_id: deployment.org_id, deployment_id: deployment.id, process, ordinal, attempt };
  if (result.outcome === "healthy") await markReady(platform.db, key);
  return result;
}

async function probeWeb(
  { settings, ports }: Release["platform"],
  { id: deployment_id, hostname, health_path: path }: Release["deployment"],
  { process, host, port, ordinal, attempt }: Released,
): Promise<ProbeResult> {
  if (host === null || port === null) return { outcome: "refused" };
  const key = { workload_id: workloadId({ deployment_id, process }), ordinal, attempt };
  const probe = { address: { host, port }, hostname, path, timeoutMs: settings.health.timeoutMs };
  return probeInstance(ports.runtime, key, probe);
}

function steadyResult({ settings }: Release["platform"], { state, since_ms }: Released): ProbeResult {
  return { outcome: state === "running" && since_ms >= settings.steadyMs ? "healthy" : "refused" };
}
