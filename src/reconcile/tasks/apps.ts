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
import type { Instance } from "../../ports/runtime.ts";
import type { Task } from "../driver.ts";
import { syncEdge } from "../edge-sync.ts";
import { checkHealth } from "../check-health.ts";
import { ingestOutput } from "../ingest.ts";
import { redactorOf, workloadOf } from "../workload.ts";
import type { World } from "../world.ts";
import { isForGood, msUntilStart, newCrash, wanted, type Crash } from "./apps-rules.ts";
import { waitUntilIdle } from "./drain.ts";

const soonMs = 250;
// A health check may take a second; many applications that come up at once must not wait for each other.
const together = 8;

/** Keeps every active deployment running with as many replicas as it ought to have, and ends what ought not to run. */
export function appsTask(world: World): Task {
  // Ending takes as long as the last request; meanwhile the others are looked after.
  const ending = new Map<string, Ending>();
  function end(id: string, work: () => Promise<void>, firstOrdinal = 0): void {
    if (ending.has(id)) return;
    const told = work().catch((error: unknown) =>
      world.log.error({ err: error, deployment: id }, "could not end a workload; it will be tried again"),
    );
    ending.set(id, { firstOrdinal, done: told.finally(() => ending.delete(id)) });
  }
  async function tendWorkload(id: string, row: WorkloadRow | undefined, tellEdge: () => void): Promise<number> {
    switch (wanted(row)) {
      case "serve": {
        const begin = (firstOrdinal: number, work: () => Promise<void>) => end(id, work, firstOrdinal);
        return keep(world, row as WorkloadRow, { from: ending.get(id)?.firstOrdinal, begin, tellEdge });
      }
      case "drain":
        end(id, () => drain(world, row as WorkloadRow));
        return Infinity;
      case "stop":
        end(id, () => stop(world, id, row));
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
      const running = await world.ports.runtime.list();
      const rows = new Map((await workloadRows(world.db, running)).map((row) => [row.id, row as WorkloadRow]));
      const waiting = [...new Set([...running, ...rows.keys()])];
      const edge = edgeTeller(world);
      let againMs = Infinity;
      const work = async () => {
        for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
          const waitMs = await tendWorkload(id, rows.get(id), edge.tell).catch(troubledBy(world, id));
          againMs = Math.min(againMs, waitMs);
        }
      };
      await Promise.all(Array.from({ length: together }, work));
      await edge.told();
      return { detail: `${rows.size} deployments, ${ending.size} ending`, againMs };
    },
    async settle() {
      await Promise.race([
        Promise.all([...ending.values()].map((each) => each.done)),
        new Promise((resolve) => setTimeout(resolve, soonMs)),
      ]);
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
function edgeTeller(world: World) {
  const telling = new Set<Promise<unknown>>();
  const failed = (error: unknown) =>
    world.log.error({ err: error }, "the edge did not take what changed; it will be tried again");
  return {
    tell: () => void telling.add(syncEdge(world).catch(failed)),
    told: () => Promise.all(telling),
  };
}

/** One application's trouble is no reason to neglect the others. */
function troubledBy(world: World, id: string): (error: unknown) => number {
  return (error) => {
    world.log.error({ err: error, deployment: id }, "could not tend a workload; it will be tried again");
    return Infinity;
  };
}

/** Starts what is missing, restarts what crashed, ends what is too much, lets healthy replicas have traffic. Answers when to look again. */
async function keep(world: World, row: WorkloadRow, shrinking: Shrinking): Promise<number> {
  const instances = await world.ports.runtime.observe(row.id);
  const known = new Map((await replicasOf(world.db, row.id)).map((replica) => [replica.ordinal, replica]));
  const surplus = instances.filter((instance) => instance.ordinal >= row.replicas);
  const kept = instances.filter((instance) => instance.ordinal < row.replicas);
  if (surplus.length > 0) shrinking.begin(row.replicas, () => shrink(world, row, surplus));
  else if (kept.length < row.replicas && shrinking.from !== 0)
    await world.ports.runtime.apply(await workloadOf(world, row));
  const staying = kept.filter((instance) => instance.ordinal < (shrinking.from ?? Infinity));
  const waits = await Promise.all(
    staying.map((instance) => tend({ world, row, instance, known: known.get(instance.ordinal) }, shrinking.tellEdge)),
  );
  return Math.min(...waits, staying.length < row.replicas ? soonMs : Infinity);
}

interface Replica {
  readonly world: World;
  readonly row: WorkloadRow;
  readonly instance: Instance;
  readonly known: ReplicaRow | undefined;
}

async function tend(replica: Replica, tellEdge: () => void): Promise<number> {
  const { world, row, instance, known } = replica;
  if (instance.state === "running") return admit(replica, tellEdge);
  const crash = newCrash(instance, known);
  if (crash === undefined) {
    const leftMs = msUntilStart(known, world.clock.now());
    if (leftMs > 0) return leftMs;
    await world.ports.runtime.restart(await workloadOf(world, row), instance.ordinal);
    return soonMs;
  }
  await ingestOutput(world, outputOf(world, row));
  const first = await markCrashed(world.db, { org_id: row.org_id, deployment_id: row.id, ...crash });
  if (first) await tellCrash(world, row, crash);
  tellEdge();
  return crash.pauseMs;
}

async function tellCrash(world: World, row: WorkloadRow, crash: Crash): Promise<void> {
  world.log.warn(
    { project: row.slug, deployment: row.number, replica: crash.ordinal, exit_code: crash.exit_code },
    "an application crashed",
  );
  await recordCrash(world.db, {
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
async function admit({ world, row, instance, known }: Replica, tellEdge: () => void): Promise<number> {
  if (known?.ready_attempt === instance.attempt || instance.address === null) return Infinity;
  const { timeoutMs } = world.settings.health;
  const found = await checkHealth({
    address: instance.address,
    hostname: row.hostname,
    path: row.health_path,
    timeoutMs: Math.min(timeoutMs, 1000),
  });
  if (found.seen !== "healthy") return soonMs;
  await markReady(world.db, {
    org_id: row.org_id,
    deployment_id: row.id,
    ordinal: instance.ordinal,
    attempt: instance.attempt,
  });
  tellEdge();
  return Infinity;
}

/** The surplus gets nothing new; what it still serves may end. Then it does, unless it is wanted again by now. */
async function shrink(world: World, row: WorkloadRow, surplus: readonly Instance[]): Promise<void> {
  await withdraw(world, row, surplus);
  await waitUntilIdle(world, surplus, row.updated_at);
  const now = await rowNow(world, row.id);
  if (now !== undefined && wanted(now) === "serve" && now.replicas > row.replicas) return;
  await world.ports.runtime.apply(await workloadOf(world, row));
}

async function drain(world: World, row: WorkloadRow): Promise<void> {
  const instances = await world.ports.runtime.observe(row.id);
  await withdraw(world, row, instances);
  await waitUntilIdle(world, instances, row.retired_at ?? row.deleted_at ?? row.suspended_at);
  // An undelete may have come meanwhile.
  const now = await rowNow(world, row.id);
  if (now !== undefined && wanted(now) === "serve") return;
  await stop(world, row.id, row);
}

/**
 * Whatever the rows say meanwhile, the edge sends these replicas nothing until a health check lets them in again: a scale or an
 * undelete in the middle of an ending must not send requests to processes that are about to get SIGTERM.
 */
async function withdraw(world: World, row: WorkloadRow, instances: readonly Instance[]): Promise<void> {
  await markWithdrawn(
    world.db,
    row.id,
    instances.map((instance) => instance.ordinal),
  );
  await syncEdge(world);
}

async function rowNow(world: World, id: string): Promise<WorkloadRow | undefined> {
  return (await workloadRows(world.db, [id])).find((row) => row.id === id) as WorkloadRow | undefined;
}

/**
 * Ends all applications because the platform ends. They are forgotten, not left as ended: the next start would take them for
 * crashed and wait before it starts them again.
 */
export async function endApplications(world: World): Promise<void> {
  const running = await world.ports.runtime.list();
  const rows = new Map((await workloadRows(world.db, running)).map((row) => [row.id, row as WorkloadRow]));
  await Promise.all(running.map((id) => stop(world, id, rows.get(id))));
}

/** Ends the processes, keeps their last words, forgets them. */
async function stop(world: World, id: string, row: WorkloadRow | undefined): Promise<void> {
  await world.ports.runtime.stop(id, world.settings.stopGraceMs);
  if (row !== undefined) await ingestOutput(world, outputOf(world, row));
  await world.ports.runtime.remove(id, { forGood: isForGood(row) });
  await world.ports.logStore.forgetPositions(id);
}

function outputOf(world: World, row: WorkloadRow) {
  return {
    workload_id: row.id,
    project_id: row.project_id,
    deployment: row.number,
    redactor: async () => redactorOf(await workloadOf(world, row)),
  };
}
