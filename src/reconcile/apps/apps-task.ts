import { recordCrash } from "../../features/activity/activity.ts";
import {
  markCrashed,
  markReady,
  markWithdrawn,
  replicasOf,
  workloadRows,
  type ReplicaRow,
  type WorkloadRow,
} from "../../features/deployments/deployments.ts";
import { settlesWithin } from "../../kit/settles-within.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import type { Instance } from "../../ports/runtime.ts";
import type { Task } from "../driver.ts";
import { syncEdge } from "../edge/edge-sync.ts";
import { checkHealth } from "../check-health.ts";
import { redactorOf, workloadOf } from "../workload.ts";
import type { Platform } from "../platform.ts";
import { isForGood, msUntilStart, newCrash, wanted, type Crash } from "./apps-rules.ts";
import { waitUntilIdle } from "./wait-until-idle.ts";

const soonMs = 250;
// A health check may take a second; many applications that come up at once must not wait for each other.
const maxConcurrency = 8;

/** Keeps every active deployment running with as many replicas as it ought to have, and ends what ought not to run. */
export function appsTask(platform: Platform): Task {
  // Ending takes as long as the last request; meanwhile the others are looked after.
  const ending = new Map<string, Ending>();
  function end(id: string, work: () => Promise<void>, firstOrdinal = 0): void {
    if (ending.has(id)) return;
    const told = work().catch((error: unknown) =>
      platform.log.error({ err: error, deployment: id }, "could not end a workload; it will be tried again"),
    );
    ending.set(id, { firstOrdinal, done: told.finally(() => ending.delete(id)) });
  }
  async function tendWorkload(id: string, row: WorkloadRow | undefined, tellEdge: () => void): Promise<number> {
    switch (wanted(row)) {
      case "serve": {
        const begin = (firstOrdinal: number, work: () => Promise<void>) => end(id, work, firstOrdinal);
        return keep(platform, row as WorkloadRow, { from: ending.get(id)?.firstOrdinal, begin, tellEdge });
      }
      case "drain":
        end(id, () => drain(platform, row as WorkloadRow));
        return Infinity;
      case "stop":
        end(id, () => stop(platform, id, row));
        return Infinity;
      case "leave":
        return Infinity;
    }
  }
  return {
    name: "apps",
    periodMs: 2000,
    topics: ["apps"],
    async run() {
      const running = await platform.ports.runtime.list();
      const rows = new Map((await workloadRows(platform.db, running)).map((row) => [row.id, row as WorkloadRow]));
      const ids = [...new Set([...running, ...rows.keys()])];
      const edge = edgeTeller(platform);
      let againMs = Infinity;
      await mapWithConcurrency(ids, maxConcurrency, async (id) => {
        const waitMs = await tendWorkload(id, rows.get(id), edge.tell).catch(troubledBy(platform, id));
        againMs = Math.min(againMs, waitMs);
      });
      await edge.told();
      return { detail: `${rows.size} deployments, ${ending.size} ending`, againMs };
    },
    async settle() {
      await settlesWithin(Promise.all([...ending.values()].map((each) => each.done)), soonMs);
    },
  };
}

interface Ending {
  /** Replicas from this ordinal on are on their way out. */
  readonly firstOrdinal: number;
  readonly done: Promise<void>;
}

/** What of a workload is ending: nobody may let it have traffic again before it is decided whether it stays. */
interface Shrinking {
  readonly from: number | undefined;
  begin(firstOrdinal: number, work: () => Promise<void>): void;
  /** The edge is told soon, and with it of whatever else changes meanwhile. */
  tellEdge(): void;
}

/** Lets the edge know while others are looked after: those who have something to tell at the same time share one table. */
function edgeTeller(platform: Platform) {
  const telling = new Set<Promise<unknown>>();
  const failed = (error: unknown) =>
    platform.log.error({ err: error }, "the edge did not take what changed; it will be tried again");
  return {
    tell: () => void telling.add(syncEdge(platform).catch(failed)),
    told: () => Promise.all(telling),
  };
}

/** One application's trouble is no reason to neglect the others. */
function troubledBy(platform: Platform, id: string): (error: unknown) => number {
  return (error) => {
    platform.log.error({ err: error, deployment: id }, "could not tend a workload; it will be tried again");
    return Infinity;
  };
}

/** Starts what is missing, restarts what crashed, ends what is too much, lets healthy replicas have traffic. Answers when to look again. */
async function keep(platform: Platform, row: WorkloadRow, shrinking: Shrinking): Promise<number> {
  const instances = await platform.ports.runtime.observe(row.id);
  const known = new Map((await replicasOf(platform.db, row.id)).map((replica) => [replica.ordinal, replica]));
  const surplus = instances.filter((instance) => instance.ordinal >= row.replicas);
  const kept = instances.filter((instance) => instance.ordinal < row.replicas);
  if (surplus.length > 0) shrinking.begin(row.replicas, () => shrink(platform, row, surplus));
  else if (kept.length < row.replicas && shrinking.from !== 0)
    await platform.ports.runtime.apply(await workloadOf(platform, row));
  const staying = kept.filter((instance) => instance.ordinal < (shrinking.from ?? Infinity));
  const waits = await Promise.all(
    staying.map((instance) =>
      tend({ platform, row, instance, known: known.get(instance.ordinal) }, shrinking.tellEdge),
    ),
  );
  return Math.min(...waits, staying.length < row.replicas ? soonMs : Infinity);
}

interface Replica {
  readonly platform: Platform;
  readonly row: WorkloadRow;
  readonly instance: Instance;
  readonly known: ReplicaRow | undefined;
}

async function tend(replica: Replica, tellEdge: () => void): Promise<number> {
  const { platform, row, instance, known } = replica;
  if (instance.state === "running") return admit(replica, tellEdge);
  const crash = newCrash(instance, known);
  if (crash === undefined) {
    const leftMs = msUntilStart(known, platform.clock.now());
    if (leftMs > 0) return leftMs;
    await platform.ports.runtime.restart(await workloadOf(platform, row), instance.ordinal);
    return soonMs;
  }
  await platform.ingestOutput(outputOf(platform, row));
  const first = await markCrashed(platform.db, { org_id: row.org_id, deployment_id: row.id, ...crash });
  if (first) await tellCrash(platform, row, crash);
  tellEdge();
  return crash.pauseMs;
}

async function tellCrash(platform: Platform, row: WorkloadRow, crash: Crash): Promise<void> {
  platform.log.warn(
    { project: row.slug, deployment: row.number, replica: crash.ordinal, exit_code: crash.exit_code },
    "an application crashed",
  );
  await recordCrash(platform.db, {
    org_id: row.org_id,
    project_id: row.project_id,
    deployment: row.number,
    replica: crash.ordinal,
    out_of_memory: crash.out_of_memory,
    exit_code: crash.exit_code,
    restarts: crash.restarts,
    next_start_in_ms: crash.pauseMs,
  });
}

/** A running replica gets traffic once it answers as its health check demands. */
async function admit({ platform, row, instance, known }: Replica, tellEdge: () => void): Promise<number> {
  if (known?.ready_attempt === instance.attempt || instance.address === null) return Infinity;
  const { timeoutMs } = platform.settings.health;
  const found = await checkHealth({
    address: instance.address,
    hostname: row.hostname,
    path: row.health_path,
    timeoutMs: Math.min(timeoutMs, 1000),
  });
  if (found.seen !== "healthy") return soonMs;
  await markReady(platform.db, {
    org_id: row.org_id,
    deployment_id: row.id,
    ordinal: instance.ordinal,
    attempt: instance.attempt,
  });
  tellEdge();
  return Infinity;
}

/** The surplus gets nothing new; what it still serves may end. Then it does, unless it is wanted again by now. */
async function shrink(platform: Platform, row: WorkloadRow, surplus: readonly Instance[]): Promise<void> {
  await withdraw(platform, row, surplus);
  await waitUntilIdle(platform, surplus, row.updated_at);
  const now = await rowNow(platform, row.id);
  if (now !== undefined && wanted(now) === "serve" && now.replicas > row.replicas) return;
  await platform.ports.runtime.apply(await workloadOf(platform, row));
}

async function drain(platform: Platform, row: WorkloadRow): Promise<void> {
  const instances = await platform.ports.runtime.observe(row.id);
  await withdraw(platform, row, instances);
  await waitUntilIdle(platform, instances, row.retired_at ?? row.deleted_at ?? row.suspended_at);
  // An undelete may have come meanwhile.
  const now = await rowNow(platform, row.id);
  if (now !== undefined && wanted(now) === "serve") return;
  await stop(platform, row.id, row);
}

/**
 * Whatever the rows say meanwhile, the edge sends these replicas nothing until a health check lets them in again: a scale or an
 * undelete in the middle of an ending must not send requests to processes that are about to get SIGTERM.
 */
async function withdraw(platform: Platform, row: WorkloadRow, instances: readonly Instance[]): Promise<void> {
  await markWithdrawn(
    platform.db,
    row.id,
    instances.map((instance) => instance.ordinal),
  );
  await syncEdge(platform);
}

async function rowNow(platform: Platform, id: string): Promise<WorkloadRow | undefined> {
  return (await workloadRows(platform.db, [id])).find((row) => row.id === id) as WorkloadRow | undefined;
}

/**
 * Ends all applications because the platform ends. They are forgotten, not left as ended: the next start would take them for
 * crashed and wait before it starts them again.
 */
export async function endApplications(platform: Platform): Promise<void> {
  const running = await platform.ports.runtime.list();
  const rows = new Map((await workloadRows(platform.db, running)).map((row) => [row.id, row as WorkloadRow]));
  await Promise.all(running.map((id) => stop(platform, id, rows.get(id))));
}

/** Ends the processes, keeps their last words, forgets them. */
async function stop(platform: Platform, id: string, row: WorkloadRow | undefined): Promise<void> {
  await platform.ports.runtime.stop(id, platform.settings.stopGraceMs);
  if (row !== undefined) await platform.ingestOutput(outputOf(platform, row));
  await platform.ports.runtime.remove(id, { forGood: isForGood(row) });
  await platform.ports.logStore.forgetPositions(id);
}

function outputOf(platform: Platform, row: WorkloadRow) {
  return {
    workload_id: row.id,
    project_id: row.project_id,
    deployment: row.number,
    redactor: async () => redactorOf(await workloadOf(platform, row)),
  };
}
