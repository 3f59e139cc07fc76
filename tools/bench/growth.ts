import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { awaitEdges } from "../../src/features/routes/routes.ts";
import { until } from "../../src/kit/until.ts";
import type { Platform } from "../../src/reconcile/platform.ts";
import { ask } from "../../test/e2e/traffic.ts";
import type { VisitedPlatform } from "../../test/e2e/ways.ts";
import { startGrownPlatform, type GrownPlatform } from "./grown-platform.ts";
import { processorSeconds } from "./processor-time.ts";
import { benchSize, countRow, median, timeRow, usageRow, type BenchRow } from "./row.ts";

const few = 10;
const many = benchSize("projects", 1000);
const running = benchSize("running", 150);
const switches = 25;
const rollbacks = 5;
const idleSeconds = 30;
const restMs = 10_000;
const startMs = 600_000;

/** Measures the platform's own work with many projects instead of a few, and with many running applications instead of one. */
export async function measureGrowth(): Promise<readonly BenchRow[]> {
  return [...(await measureRows()), ...(await measureRunning())];
}

/** Measures projects that exist as rows: active, but running on another machine. */
export async function measureRows(start?: () => Promise<VisitedPlatform>): Promise<readonly BenchRow[]> {
  const grown = await startGrownPlatform(start);
  try {
    const made = await grown.add(few - 1, "running elsewhere");
    const before = await measureSwitches(grown, made[0] as string);
    await grown.add(many - few, "running elsewhere");
    const after = await measureSwitches(grown, made[0] as string);
    const against = `that with ${few}`;
    const projects = `${many} serving projects${start === undefined ? "" : " on a swarm"}`;
    return [
      timeRow(`a switch (commit to confirmation) with ${projects}`, against, {
        ...{ ours: after.switchMs, theirs: before.switchMs, goal: 1.5 },
      }),
      timeRow(`a rollback with ${projects}`, against, {
        ...{ ours: after.rollbackMs, theirs: before.rollbackMs, goal: 1.5 },
      }),
    ];
  } finally {
    await grown.close();
  }
}

async function measureSwitches(grown: GrownPlatform, slug: string) {
  await sleep(restMs);
  const switchTimes: number[] = [];
  for (let each = 0; each < switches; each += 1) switchTimes.push(await timeOf(() => moveRoute(grown, slug, each)));
  const rollbackTimes: number[] = [];
  for (let each = 0; each < rollbacks; each += 1)
    rollbackTimes.push(await timeOf(() => rollBack(grown, 1 + (each % 2))));
  return { switchMs: median(switchTimes), rollbackMs: median(rollbackTimes) };
}

/** Moves the project to another address, as a switch does. */
async function moveRoute({ db, wakeups }: GrownPlatform, slug: string, each: number): Promise<void> {
  await sql`update replica set port = ${3001 + each} where deployment_id =
    (select d.id from deployment d join project p on p.id = d.project_id where p.slug = ${slug})`.execute(db);
  const state = await awaitEdges({ db, wakeups } as Platform, { timeoutMs: 30_000 });
  if (state !== "confirmed") throw new Error(`the edge did not confirm a switch: ${state}`);
}

async function rollBack({ platform, slug }: GrownPlatform, deployment: number): Promise<void> {
  const { status, body } = await platform.call("POST", `/v1/projects/${slug}/rollback`, { deployment });
  if (status !== 200) throw new Error(`the rollback failed: ${JSON.stringify(body)}`);
}

/** Measures applications that really run here. */
async function measureRunning(): Promise<readonly BenchRow[]> {
  const grown = await startGrownPlatform();
  try {
    const one = await measureIdle(grown);
    const restartOne = await timeOf(() => restart(grown, "SIGKILL"));
    const slugs = await grown.add(running - 1, "running here");
    await allAnswer(grown, slugs);
    const all = await measureIdle(grown);
    const restartAll = await timeOf(() => restart(grown, "SIGKILL"));
    const against = "that with 1";
    const unanswered = await countUnanswered(grown, slugs);
    await restart(grown, "SIGINT");
    const cold = await measureColdStart(grown, slugs);
    const rows = (["processor", "commits", "rows"] as const).map((kind) =>
      usageRow(`${idleUnits[kind].name} while idle with ${running} running applications`, against, {
        ...{ ours: all[kind], theirs: one[kind], unit: idleUnits[kind].unit, goal: kind === "processor" ? 3 : null },
      }),
    );
    return [
      ...rows,
      timeRow(`a restart after SIGKILL with ${running} running applications`, against, {
        ...{ ours: restartAll, theirs: restartOne, goal: null },
      }),
      countRow("applications did not answer right after that restart", `${running}`, unanswered),
      timeRow(`a cold start until all of ${running} answer`, "that until the first answers", {
        ...{ ours: cold.allMs, theirs: cold.firstMs, goal: null },
      }),
    ];
  } finally {
    await grown.close();
  }
}

const idleUnits = {
  processor: { name: "processor time", unit: "s a minute" },
  commits: { name: "commits", unit: "a second" },
  rows: { name: "rows read", unit: "a second" },
} as const;

async function measureIdle({ platform, db }: GrownPlatform) {
  await sleep(restMs);
  const [before, counted] = [processorSeconds(platform), await databaseCounts(db)];
  await sleep(idleSeconds * 1000);
  const [after, countedAfter] = [processorSeconds(platform), await databaseCounts(db)];
  return {
    processor: ((after - before) * 60) / idleSeconds,
    commits: (countedAfter.commits - counted.commits) / idleSeconds,
    rows: (countedAfter.rows - counted.rows) / idleSeconds,
  };
}

/** Reads PostgreSQL's own counts; each session reports them when it goes idle, at most once a second. */
async function databaseCounts(db: GrownPlatform["db"]): Promise<{ commits: number; rows: number }> {
  const { rows } = await sql<{ commits: number; rows: number }>`
    select xact_commit::float8 as commits, (tup_returned + tup_fetched)::float8 as rows
    from pg_stat_database where datname = current_database()`.execute(db);
  return rows[0] as { commits: number; rows: number };
}

async function restart({ platform }: GrownPlatform, signal: NodeJS.Signals): Promise<void> {
  await platform.end(signal);
  await platform.restart();
}

async function allAnswer({ platform }: GrownPlatform, slugs: readonly string[]): Promise<void> {
  for (const slug of slugs) {
    const answers = async () => ((await statusOf(platform.edgePort, slug)) === 200 ? true : undefined);
    if (!(await until(answers, { timeoutMs: startMs, atMostMs: 100 }))) throw new Error(`${slug} does not answer`);
  }
}

async function countUnanswered({ platform }: GrownPlatform, slugs: readonly string[]): Promise<number> {
  const statuses = await Promise.all(slugs.map((each) => statusOf(platform.edgePort, each)));
  return statuses.filter((status) => status !== 200).length;
}

async function measureColdStart(grown: GrownPlatform, slugs: readonly string[]) {
  const startedAtMs = performance.now();
  const first = async () => {
    const unanswered = await countUnanswered(grown, slugs);
    return unanswered < slugs.length ? true : undefined;
  };
  if (!(await until(first, { timeoutMs: startMs }))) throw new Error("no application answers after the start");
  const firstMs = performance.now() - startedAtMs;
  await allAnswer(grown, slugs);
  return { firstMs, allMs: performance.now() - startedAtMs };
}

async function statusOf(port: number, slug: string): Promise<number> {
  return (await ask(port, slug, "/")).status;
}

async function timeOf(work: () => Promise<void>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}
