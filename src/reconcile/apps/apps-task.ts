import { databasesUsedBy, specOf } from "../../features/database/database.ts";
import { changedWorkloads, type WorkloadRow } from "../../features/replicas/replicas.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import { settlesWithin } from "../../kit/settles-within.ts";
import type { Edge } from "../../ports/edge.ts";
import type { Instance } from "../../ports/runtime.ts";
import type { Task, Platform } from "../platform.ts";
import { actOnReplica, type Replica } from "./act-on-replica.ts";
import { desiredReplicas, nextAction, replicaToRestart } from "./apps-rules.ts";
import { endReplicas, stopReplicas } from "./end-replicas.ts";

const periodMs = 5000;
// A start in progress ends within seconds. A stop may wait for open requests, and the code that ends the applications repeats it.
const actionSettleMs = 10_000;
const endingSettleMs = 250;
// How soon to check again for a type that must not run twice and is still running elsewhere.
const waitMs = 250;
// A low limit, so that each start completes before many others use the processors.
const maxStarts = 4;

/** Keeps every active deployment running with the desired number of replicas, and stops all others. */
export function appsTask(platform: Platform, wake: () => void): Task {
  const work = createInFlight(platform, wake);
  const asked = createAskedProjects(platform.ports.edge);
  const databasesComingUp = createDatabasesComingUp(platform);
  const known = createKnownWorkloads(platform);
  return {
    name: "apps",
    periodMs,
    topics: ["apps"],
    async run() {
      const workloads = await readWorkloads(platform, known);
      const starts: Start[] = [];
      let againMs = periodMs;
      for (const workload of workloads) {
        endSurplus(platform, workload, work);
        for (const replica of replicasToKeep(platform, workload, work)) {
          const action = nextAction(replica.row, replica.instance, platform.clock.now());
          const key = `${workload.id}/${replica.ordinal}`;
          if (action.action === "crashed") work.interrupt(key);
          if (action.action === "none") continue;
          if (action.action !== "start") work.begin(key, (signal) => actOnReplica(replica, action, signal));
          else if (replica.workload.waits) againMs = Math.min(againMs, waitMs);
          else if (action.inMs > 0) againMs = Math.min(againMs, action.inMs);
          else starts.push({ key, replica });
        }
      }
      const waiting = await databasesComingUp(new Set(starts.map(({ replica }) => replica.workload.project_id)));
      if (waiting.size > 0) againMs = Math.min(againMs, waitMs);
      const ready = starts.filter(({ replica }) => !waiting.has(replica.workload.project_id));
      await beginStarts(ready, work, asked);
      return { detail: `${workloads.length} deployments, ${work.count()} actions under way`, againMs };
    },
    settle: () => work.settle(),
  };
}

interface Start {
  readonly key: string;
  readonly replica: Replica;
}

/** Starts as many replicas as the limit allows, first those of projects whose visitors are being refused. Each completed start frees a slot. */
async function beginStarts(starts: readonly Start[], work: InFlight, asked: AskedProjects): Promise<void> {
  const ready = starts.filter(({ key }) => !work.has(key));
  const room = maxStarts - work.startsUnderWay();
  const ordered = ready.length > room ? await asked.first(ready, ({ replica }) => replica.workload.project_id) : ready;
  for (const { key, replica } of ordered.slice(0, Math.max(0, room)))
    work.begin(key, (signal) => actOnReplica(replica, { action: "start", inMs: 0 }, signal), { isStart: true });
}

interface WorkloadNow {
  readonly id: string;
  /** Undefined if the database has no row for it. */
  readonly row: WorkloadRow | undefined;
  readonly instances: readonly Instance[];
}

/** Reads what runs on this machine and what should run. */
async function readWorkloads(platform: Platform, known: KnownWorkloads): Promise<readonly WorkloadNow[]> {
  const instances = Map.groupBy(await platform.ports.runtime.observe(), ({ workload_id }) => workload_id);
  const rows = await known(instances.keys());
  const ids = new Set([...rows.keys(), ...instances.keys()]);
  return [...ids].map((id) => ({ id, row: rows.get(id), instances: instances.get(id) ?? [] }));
}

/** Returns the replicas that should run and are not being stopped. For a deployment that is being released: only those that exited. */
function replicasToKeep(platform: Platform, { id, row, instances }: WorkloadNow, work: InFlight): readonly Replica[] {
  if (row === undefined) return [];
  const rows = new Map(row.replica_rows.map((replica) => [replica.ordinal, replica]));
  const found = new Map(instances.map((instance) => [instance.ordinal, instance]));
  const desired = desiredReplicas(row);
  const ordinals =
    desired === undefined
      ? endedWhileReleased(row, found)
      : Array.from({ length: desired }, (_, ordinal) => ordinal).filter((ordinal) => !work.isEnding(id, ordinal));
  return ordinals.map((ordinal) => ({
    ...{ platform, workload: row, ordinal },
    ...{ row: rows.get(ordinal), instance: found.get(ordinal) },
  }));
}

/** While the releases task starts a deployment, this task only records its replicas' exits. */
function endedWhileReleased(row: WorkloadRow, found: ReadonlyMap<number, Instance>): readonly number[] {
  const ended = row.replica_rows.filter(
    ({ ordinal, attempt, state }) =>
      state === "running" && found.get(ordinal)?.attempt === attempt && found.get(ordinal)?.state === "exited",
  );
  return ended.map(({ ordinal }) => ordinal);
}

function endSurplus(platform: Platform, { id, row, instances }: WorkloadNow, work: InFlight): void {
  const desired = desiredReplicas(row);
  if (desired === undefined) return;
  const present = row?.replica_rows.filter(({ state }) => state !== "stopped") ?? [];
  const all = new Set([...present, ...instances].map(({ ordinal }) => ordinal));
  const anew = row === undefined || desired === 0 ? undefined : replicaToRestart(row);
  const ordinals = [...all].filter((ordinal) => ordinal >= desired || ordinal === anew);
  if (ordinals.length > 0) work.end(id, ordinals, () => endReplicas(platform, { id, row, ordinals }));
}

interface Action {
  readonly isStart: boolean;
  readonly over: AbortController;
  readonly done: Promise<void>;
}

type InFlight = ReturnType<typeof createInFlight>;

/** Tracks running actions: one at a time per replica, and one stop per workload. A failed action is logged, and the next run retries it. */
function createInFlight(platform: Platform, wake: () => void) {
  const actions = new Map<string, Action>();
  const endings = new Map<string, { readonly ordinals: readonly number[]; readonly done: Promise<void> }>();
  const guard = (id: string, work: () => Promise<void>, forget: () => void) =>
    work()
      .then(wake)
      .catch((error: unknown) =>
        platform.log.error(
          { err: error, deployment: id },
          "an action on an application failed; it will be tried again",
        ),
      )
      .finally(forget);
  return {
    has: (key: string) => actions.has(key),
    count: () => actions.size + endings.size,
    startsUnderWay: () => [...actions.values()].filter(({ isStart }) => isStart).length,
    isEnding: (id: string, ordinal: number) => endings.get(id)?.ordinals.includes(ordinal) ?? false,
    begin(key: string, work: (signal: AbortSignal) => Promise<void>, { isStart = false } = {}): void {
      if (actions.has(key)) return;
      const over = new AbortController();
      const done = guard(
        key,
        () => work(over.signal),
        () => void actions.delete(key),
      );
      actions.set(key, { isStart, over, done });
    },
    /** Aborts an action that waits for a replica's health, because the replica has exited. */
    interrupt: (key: string) => actions.get(key)?.over.abort(),
    end(id: string, ordinals: readonly number[], work: () => Promise<void>): void {
      if (!endings.has(id)) endings.set(id, { ordinals, done: guard(id, work, () => void endings.delete(id)) });
    },
    /** Waits for the actions in progress, so that none starts a replica later; they no longer wait for a replica's health. */
    async settle(): Promise<void> {
      for (const { over } of actions.values()) over.abort();
      const allOf = (all: Iterable<{ readonly done: Promise<void> }>) => Promise.all([...all].map(({ done }) => done));
      await Promise.all([
        settlesWithin(allOf(actions.values()), actionSettleMs),
        settlesWithin(allOf(endings.values()), endingSettleMs),
      ]);
    },
  };
}

/** Stops all applications with the platform. Their replicas are marked as stopped: crashed ones would be started late. */
export async function endApplications(platform: Platform): Promise<void> {
  const workloads = await readWorkloads(platform, createKnownWorkloads(platform));
  await Promise.all(
    workloads.map(({ id, row, instances }) => {
      const ordinals = [...new Set([...(row?.replica_rows ?? []), ...instances].map(({ ordinal }) => ordinal))];
      return stopReplicas(platform, { id, row, ordinals });
    }),
  );
}

/** Orders items: first those of projects whose visitors the edge refused since the last call. */
interface AskedProjects {
  first<T>(items: readonly T[], projectOf: (item: T) => string): Promise<readonly T[]>;
}

/** If the edge can't be read, the order stays unchanged. */
export function createAskedProjects(edge: Pick<Edge, "measure">): AskedProjects {
  let known = new Map<string, number>();
  const asked = new Set<string>();
  return {
    async first(items, projectOf) {
      const now = await refusals(edge);
      for (const [project, count] of now) if (count > (known.get(project) ?? 0)) asked.add(project);
      known = now;
      return items.toSorted((one, other) => Number(asked.has(projectOf(other))) - Number(asked.has(projectOf(one))));
    },
  };
}

async function refusals(edge: Pick<Edge, "measure">): Promise<Map<string, number>> {
  const usages = await edge.measure().catch(() => []);
  const counts = new Map<string, number>();
  for (const { project_id, by_class } of usages)
    counts.set(project_id, (counts.get(project_id) ?? 0) + (by_class["5"] ?? 0));
  return counts;
}

type KnownWorkloads = ReturnType<typeof createKnownWorkloads>;

/** Returns a function that reads this machine's workloads by id. Each call queries only the projects that changed since the last. */
export function createKnownWorkloads({ db, machine }: Pick<Platform, "db" | "machine">) {
  const byProject = new Map<string, readonly WorkloadRow[]>();
  let byId: ReadonlyMap<string, WorkloadRow> = new Map();
  let since: string | null = null;

  function take({ projects, workloads }: Awaited<ReturnType<typeof changedWorkloads>>): void {
    if (projects.length === 0) return;
    const rows = Map.groupBy(workloads, ({ project_id }) => project_id);
    for (const id of projects) byProject.delete(id);
    for (const [id, found] of rows) byProject.set(id, found);
    byId = new Map([...byProject.values()].flat().map((row) => [row.id, row]));
  }

  /** `running`: the workloads that the runtime has. Their rows are read even if the database does not assign them to this machine. */
  return async (running: Iterable<string>): Promise<ReadonlyMap<string, WorkloadRow>> => {
    const changes = await changedWorkloads(db, machine, { since });
    take(changes);
    since = changes.snapshot;
    const others = [...running].filter((id) => !byId.has(id));
    if (others.length > 0) take(await changedWorkloads(db, machine, { ids: others }));
    return byId;
  };
}

// PostgreSQL starts in less than a second and recovers in seconds. A database that needs longer must not hold back its application.
const patienceMs = 60_000;
const maxConcurrency = 8;

/**
 * Returns a function that finds the projects whose database should run but does not yet. It waits only in the first minute after the
 * control plane's start, a project's undelete or a preview's sleep: an application that starts before its database exits at once and is reported as crashed.
 */
export function createDatabasesComingUp(
  platform: Pick<Platform, "db" | "vault" | "ports" | "clock">,
): (projectIds: ReadonlySet<string>) => Promise<ReadonlySet<string>> {
  const endMs = performance.now() + patienceMs;
  return async (projectIds) => {
    const missing = new Set<string>();
    if (projectIds.size === 0) return missing;
    const isEarly = performance.now() <= endMs;
    const changedSince = platform.clock.now().getTime() - patienceMs;
    const rows = (await databasesUsedBy(platform.db, projectIds)).filter(
      ({ status, project_updated_at, user_sleep_at }) =>
        status === "ready" &&
        (isEarly || [project_updated_at, user_sleep_at ?? ""].some((at) => Date.parse(at) > changedSince)),
    );
    await mapWithConcurrency(rows, maxConcurrency, async (row) => {
      const { state } = await platform.ports.postgresHost.observe(specOf(platform.vault, row));
      if (state !== "running" && row.user_id !== null) missing.add(row.user_id);
    });
    return missing;
  };
}
