import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { edgesConfirm } from "../../src/features/routes/routes.ts";
import { silentLog } from "../../src/kit/log.ts";
import type { Platform } from "../../src/reconcile/platform.ts";
import { openDatabase, type Db } from "../../src/store/database.ts";
import { startReleasePlatform, type ReleasePlatform, type ReleaseProject } from "../../test/support/releases.ts";
import { scheduledSeconds } from "./processor-time.ts";
import { countRow, median, timeRow, usageRow, type BenchRow } from "./row.ts";
import { startMetrics, startProcess } from "./scale-processes.ts";
import { addProjects, addedInstance } from "./scale-rows.ts";
import { periodicWork, reconcilers, visitedShare, type Installation } from "./scale-work.ts";
import { benchSize } from "./size.ts";

const installation: Installation = {
  projects: benchSize("projects", 10_000),
  machines: benchSize("machines", 100),
  edges: benchSize("edges", 20),
  deploysPerMinute: benchSize("deploys", 50),
};
const seconds = benchSize("seconds", 60);
const few = Math.ceil(installation.projects / 10);
const deploying = 10;
const settleMs = 10_000;

/**
 * Measures an installation with real rows and everything that its processes do by themselves, on one PostgreSQL. First measures each piece
 * of work with a tenth of the projects and with all, then everything at once, with deploys. Builds and applications cost nothing here, and
 * machines are processes.
 */
export async function measureScale(): Promise<readonly BenchRow[]> {
  const { projects, machines, edges, deploysPerMinute } = installation;
  let added = 0;
  const others = () => Array.from({ length: added }, (_, at) => addedInstance(at + 1));
  const releases = await startReleasePlatform({ others: cached(others, () => added) });
  const { platform } = releases;
  const grow = async (to: number) => {
    // The applications of these rows don't run yet, so running tasks would record crashes.
    await releases.pause();
    await addProjects(platform, added + 1, to);
    added = to;
    await releases.resume();
  };
  try {
    const deployed: ReleaseProject[] = [];
    for (let each = 0; each < deploying; each += 1) deployed.push(await releases.servingProject());
    for (const project of deployed) await project.push();
    const alone = await paced(deployed, Math.min(seconds, 20));
    await grow(few);
    const before = await measureWork(platform);
    await grow(projects);
    const after = await measureWork(platform);
    const all = await simulate(releases, deployed);
    const perDeploy = (all.deploys.database - all.idle.database) / deploysPerMinute;
    return [
      ...after.map(({ name, ms, perSecond }, at) =>
        timeRow(`${name} (${perSecond.toFixed(1)} a second) with ${projects} projects`, `that with ${few}`, {
          ...{ ours: ms, theirs: before[at]?.ms ?? 0, goal: null },
        }),
      ),
      usageRow(`PostgreSQL's processor time, ${machines} machines, ${edges} edges`, "what the rows above add up to", {
        ...{ ours: all.idle.database, theirs: loadOf(after, 0), unit: "s a minute", goal: null },
      }),
      usageRow(`the same with ${deploysPerMinute} deploys a minute`, "that without", {
        ...{ ours: all.deploys.database, theirs: all.idle.database, unit: "s a minute", goal: null },
      }),
      usageRow("processor time of all processes of Berth with these deploys", "that without", {
        ...{ ours: all.deploys.processes, theirs: all.idle.processes, unit: "s a minute", goal: null },
      }),
      timeRow(`a deploy, confirmed by ${edges + 1} edges, median`, "alone, one edge", {
        ...{ ours: median(all.times), theirs: median(alone.times), goal: null },
      }),
      timeRow("the slowest of them", "the slowest alone", {
        ...{ ours: Math.max(...all.times), theirs: Math.max(...alone.times), goal: null },
      }),
      timeRow("PostgreSQL's processor time for a deploy", `the share of a minute at ${deploysPerMinute} a minute`, {
        ...{ ours: perDeploy * 1000, theirs: 60_000 / deploysPerMinute, goal: null },
      }),
      usageRow("deploys at once, as many as are done", "asked for above", {
        ...{ ours: all.most, theirs: deploysPerMinute, unit: "a minute", goal: null },
      }),
      countRow("deploys failed", `${all.times.length}`, all.refused),
    ];
  } finally {
    await releases.close();
  }
}

type Costs = readonly { readonly name: string; readonly ms: number; readonly perSecond: number }[];

const repeats = 30;

/** Measures the database's CPU time for each piece of work, which other load on the machine hardly changes. */
async function measureWork({ db, machine }: Platform): Promise<Costs> {
  const costs: { name: string; ms: number; perSecond: number }[] = [];
  for (const { name, perSecond, work } of periodicWork(machine)) {
    // The first runs create the query plans.
    for (let each = 0; each < 6; each += 1) await work(db);
    const { used } = await usedDuring(db, async () => {
      for (let each = 0; each < repeats; each += 1) await work(db);
    });
    costs.push({ name, perSecond: perSecond(installation), ms: (used.database * 1000) / repeats });
  }
  return costs;
}

/** Returns the database's CPU seconds in a minute. */
function loadOf(costs: Costs, deploysPerMinute: number): number {
  const rates = periodicWork("").map(({ perSecond }) => perSecond({ ...installation, deploysPerMinute }));
  return costs.reduce((sum, { ms }, at) => sum + (ms * (rates[at] ?? 0) * 60) / 1000, 0);
}

interface Used {
  readonly database: number;
  readonly processes: number;
  readonly minutes: number;
}

async function simulate(releases: ReleasePlatform, deployed: readonly ReleaseProject[]) {
  // Use another connection, because the primary's own are busy.
  const { connection } = releases.api.database;
  const { db, close } = openDatabase({ connection: { ...connection, max: 1 }, log: silentLog });
  const started: { stop(): Promise<void> }[] = [await startMetrics(releases)];
  try {
    started.push(...(await Promise.all(processes().map((options) => startProcess(releases, options)))));
    await sleep(settleMs);
    const idle = perMinute((await usedDuring(db, () => sleep(seconds * 500))).used);
    const { used, result } = await usedDuring(db, () => paced(deployed, seconds));
    const most = await unpaced(deployed, seconds / 3);
    if ((await edgesConfirm(db, 0, "route_version")) !== "confirmed") throw new Error("no edge was live");
    return { idle, deploys: perMinute(used), ...result, most };
  } finally {
    await Promise.all(started.map((each) => each.stop()));
    await close();
  }
}

const perMinute = ({ database, processes, minutes }: Used) => ({
  database: database / minutes,
  processes: processes / minutes,
});

/** Returns the processes besides the primary. */
function processes() {
  const { machines, edges, projects } = installation;
  return Array.from({ length: machines - 1 }, (_, each) => {
    const name = `machine-${each}`;
    if (each < edges) return { name, roles: ["edge"] as const, visited: Math.ceil(projects * visitedShare) };
    const roles = each < edges + reconcilers ? (["api", "reconcile"] as const) : (["api"] as const);
    return { name, roles, visited: 0 };
  });
}

/** Starts deploys in turn, at the given rate, and waits for the end of each. */
async function paced(deployed: readonly ReleaseProject[], forSeconds: number) {
  const times: number[] = [];
  let refused = 0;
  const pushes: Promise<void>[] = [];
  const { deploysPerMinute } = installation;
  for (let each = 0; each < Math.ceil((deploysPerMinute * forSeconds) / 60); each += 1) {
    const project = deployed[each % deployed.length] as ReleaseProject;
    const startedAtMs = performance.now();
    pushes.push(
      project.push().then(({ accepted }) => {
        times.push(performance.now() - startedAtMs);
        if (!accepted) refused += 1;
      }),
    );
    await sleep(60_000 / deploysPerMinute);
  }
  await Promise.all(pushes);
  return { times, refused };
}

/** Deploys each project again as soon as it is live; returns the number of deploys in a minute. */
async function unpaced(deployed: readonly ReleaseProject[], forSeconds: number): Promise<number> {
  const startedAtMs = performance.now();
  const isOver = () => performance.now() - startedAtMs > forSeconds * 1000;
  let done = 0;
  await Promise.all(
    deployed.map(async (project) => {
      for (; !isOver(); done += 1) await project.push();
    }),
  );
  return (done * 60_000) / (performance.now() - startedAtMs);
}

/** Returns CPU seconds: of the database's sessions, and of this process, which runs all of the installation. */
async function usedDuring<Result>(db: Db, work: () => Promise<Result>): Promise<{ used: Used; result: Result }> {
  const [sessions, own, startedAtMs] = [await sessionSeconds(db), process.cpuUsage(), performance.now()];
  const result = await work();
  const minutes = (performance.now() - startedAtMs) / 60_000;
  const { user, system } = process.cpuUsage(own);
  let database = 0;
  for (const [pid, now] of await sessionSeconds(db)) database += now - (sessions.get(pid) ?? 0);
  return { used: { database, processes: (user + system) / 1e6, minutes }, result };
}

async function sessionSeconds(db: Db): Promise<ReadonlyMap<number, number>> {
  const { rows } = await sql<{
    pid: number;
  }>`select pid from pg_stat_activity where datname = current_database()`.execute(db);
  return new Map(rows.map(({ pid }) => [pid, scheduledSeconds(pid)]));
}

/** Creates the list again only if its length has changed. */
function cached<Value>(make: () => readonly Value[], length: () => number): () => readonly Value[] {
  let made: readonly Value[] = [];
  return () => (made.length === length() ? made : (made = make()));
}
