import { setTimeout as sleep } from "node:timers/promises";
import { othersRun, takeOver, type ProcessRow } from "../../features/deployments/deployments.ts";
import { markReady, releasedReplicas, web, workloadId } from "../../features/replicas/replicas.ts";
import type { Failure } from "../../ports/failure.ts";
import type { ListeningPort, Workload } from "../../ports/runtime.ts";
import type { BuildLog } from "../build-log.ts";
import { probeHealth, probeInstance, type ProbeResult } from "../probe-health.ts";
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
  const { everyMs } = platform.settings.health;
  const types = new Set(processes.map(({ process }) => process));
  const end = Date.now() + budgetMsOf(release);
  const results = new Map<string, ProbeResult>();
  const resultOf = ({ process, ordinal }: Released) => results.get(`${process}/${ordinal}`);
  const watchPorts = createPortWatch(release);
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
    if (types.has(web) && [...results.values()].every(({ outcome }) => outcome === "refused")) {
      const wrong = await watchPorts(replicas.find(({ process }) => process === web)?.host ?? null);
      if (wrong !== undefined) return wrong;
    }
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

/** The project's setting decides how long a start may take; without one, an image may ask for more time than the default. */
function budgetMsOf({ platform, deployment: { start_seconds, image } }: Release): number {
  const { budgetMs } = platform.settings.health;
  return start_seconds === null ? Math.max(budgetMs, (image.start_seconds ?? 0) * 1000) : start_seconds * 1000;
}

async function unhealthy(
  release: Release,
  replica: Released | undefined,
  resultOf: (replica: Released) => ProbeResult | undefined,
): Promise<Failure> {
  const worst = (replica && resultOf(replica)) ?? { outcome: "refused" as const };
  if (replica !== undefined && replica.process !== web)
    return releaseFailure("boot", "platform_fault", `The process ${replica.process} did not start in time.`);
  const { platform, deployment, workload } = release;
  const isReached = worst.outcome !== "refused" && worst.outcome !== "broken";
  const listening = isReached ? [] : await platform.ports.runtime.listening(workload.id);
  const budgetMs = budgetMsOf(release);
  return probeFailure(worst, { port: workload.port ?? 0, path: deployment.health_path, budgetMs, listening });
}

const lookMs = 5000;
const sureMs = 10_000;

/**
 * Watches where the application listens while nothing listens on the right port, and logs it once. Returns the failure once it is sure: the
 * application serves pages elsewhere, and has for some time. Where a start time was asked for, it may still open the port.
 */
function createPortWatch(release: Release): (host: string | null) => Promise<Failure | undefined> {
  const { platform, deployment, workload, log } = release;
  const [port, beganMs] = [workload.port ?? 0, Date.now()];
  const isAsked = deployment.start_seconds !== null || deployment.image.start_seconds !== undefined;
  let dueAtMs = beganMs + lookMs;
  let known: { readonly where: string; readonly sinceMs: number } | undefined;
  return async (host) => {
    if (Date.now() < dueAtMs) return undefined;
    dueAtMs = Date.now() + lookMs;
    const listening = await platform.ports.runtime.listening(workload.id);
    if (listening.length === 0) return undefined;
    const where = whereItListens({ port, listening });
    if (known === undefined) log.detail(`Waiting for port ${port}; ${where}`);
    if (known?.where !== where) known = { where, sinceMs: Date.now() };
    if (isAsked || host === null || Date.now() - known.sinceMs < sureMs) return undefined;
    if (!(await servesElsewhere({ host, port, hostname: deployment.hostname }, listening))) return undefined;
    const budgetMs = Date.now() - beganMs;
    return probeFailure({ outcome: "refused" }, { port, path: deployment.health_path, budgetMs, listening });
  };
}

const pageMs = 1000;

/** Whether the application, which refuses requests, listens on the right port of other addresses, or shows a page on another port. */
async function servesElsewhere(
  { host, port, hostname }: { readonly host: string; readonly port: number; readonly hostname: string },
  listening: readonly ListeningPort[],
): Promise<boolean> {
  if (listening.some((each) => each.port === port)) return true;
  const probes = listening.map((each) =>
    probeHealth({ address: { host, port: each.port }, hostname, path: "/", timeoutMs: pageMs }),
  );
  return (await Promise.all(probes)).some(({ outcome }) => outcome === "healthy");
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
