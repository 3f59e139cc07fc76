import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { awaitEdges } from "../../src/features/routes/routes.ts";
import { until } from "../../src/kit/until.ts";
import { ask } from "../../test/e2e/traffic.ts";
import type { VisitedPlatform } from "../../test/e2e/ways.ts";
import { startGrownPlatform, type GrownPlatform } from "./grown-platform.ts";
import { processorSeconds } from "./processor-time.ts";
import { benchSize, comparing, countRow, goalRow, median, timed, timeRow, type BenchRow } from "./row.ts";

const few = 10;
const many = benchSize("projects", 1000);
const running = benchSize("running", 150);
const hosts = benchSize("hosts", 10_000);
const switches = 40;
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
  await using grown = await startGrownPlatform(start);
  await grown.addRows(1, few - 1);
  const before = await measureSwitches(grown);
  await grown.addRows(few, many - 1);
  const after = await measureSwitches(grown);
  const against = `that with ${few}`;
  const of = (what: "switchMs" | "rollbackMs") => ({ ours: after[what], theirs: before[what], goal: 1.5 });
  const projects = `${many} serving projects${start === undefined ? "" : " on a swarm"}`;
  return [
    timeRow(`a switch (commit to confirmation) with ${projects}`, against, of("switchMs")),
    timeRow(`a rollback with ${projects}`, against, of("rollbackMs")),
  ];
}

/** Measures the time from the commit of one route's change to the edge's confirmation, with 10,000 hosts as rows. */
export async function measureEdgeRows(): Promise<readonly BenchRow[]> {
  await using grown = await startGrownPlatform();
  await grown.addRows(1, hosts);
  await confirmed(grown, startMs);
  const times = await switchTimes(grown, hosts);
  const spread = `least ${Math.min(...times).toFixed(1)}, most ${Math.max(...times).toFixed(1)}`;
  const name = `edge, from the commit of a change to its confirmation, ${hosts} hosts (${spread})`;
  return [goalRow(name, median(times), { goal: 50, unit: "ms" })];
}

async function measureSwitches(grown: GrownPlatform) {
  await sleep(restMs);
  const switchMs = median(await switchTimes(grown, few - 1));
  const rollbackTimes = await Array.fromAsync({ length: rollbacks }, (_, each) =>
    timed(() => rollBack(grown, 1 + (each % 2))),
  );
  return { switchMs, rollbackMs: median(rollbackTimes) };
}

/** Moves replicas of the first `projects` to other addresses, as switches do. */
async function switchTimes(grown: GrownPlatform, projects: number): Promise<number[]> {
  const times: number[] = [];
  for (let each = 0; each < switches; each += 1) {
    const deployment = `dep_scale_${1 + ((each * 97) % projects)}_3`;
    await sql`update replica set port = ${3001 + each} where deployment_id = ${deployment}`.execute(grown.db);
    times.push(await timed(() => confirmed(grown, 30_000)));
  }
  // The first changes run before the code is compiled.
  return times.slice(switches / 4);
}

/** Also waits for an edge that is busy with its first table for so long that it counts as dead. */
async function confirmed({ db, wakeups }: GrownPlatform, timeoutMs: number): Promise<void> {
  const isConfirmed = async () =>
    (await awaitEdges({ db, wakeups }, { timeoutMs })) === "confirmed" ? true : undefined;
  if (!(await until(isConfirmed, { timeoutMs }))) throw new Error("the edge did not confirm a change");
}

async function rollBack({ platform, slug }: GrownPlatform, deployment: number): Promise<void> {
  const { status, body } = await platform.call("POST", `/v1/projects/${slug}/rollback`, { deployment });
  if (status !== 200) throw new Error(`the rollback failed: ${JSON.stringify(body)}`);
}

/** Measures applications that really run here. */
async function measureRunning(): Promise<readonly BenchRow[]> {
  await using grown = await startGrownPlatform();
  const one = await measureIdle(grown);
  const restartOne = await timed(() => restart(grown, "SIGKILL"));
  const slugs = await grown.addRunning(running - 1);
  await allAnswer(grown, slugs);
  const all = await measureIdle(grown);
  const restartAll = await timed(() => restart(grown, "SIGKILL"));
  const against = "that with 1";
  const unanswered = await countUnanswered(grown, slugs);
  await restart(grown, "SIGINT");
  const cold = await measureColdStart(grown, slugs);
  const restarted = `a restart after SIGKILL with ${running} running applications`;
  const idle = `while idle with ${running} running applications`;
  return [
    comparing("s a minute")(`processor time ${idle}`, against, { ours: all.seconds, theirs: one.seconds, goal: 3 }),
    comparing("a second")(`commits ${idle}`, against, { ours: all.commits, theirs: one.commits }),
    comparing("a second")(`rows read ${idle}`, against, { ours: all.rows, theirs: one.rows }),
    timeRow(restarted, against, { ours: restartAll, theirs: restartOne }),
    countRow("applications did not answer right after that restart", `${running}`, unanswered),
    timeRow(`a cold start until all of ${running} answer`, "that until the first answers", cold),
  ];
}

async function measureIdle({ platform, db }: GrownPlatform) {
  await sleep(restMs);
  const [before, counted] = [processorSeconds(platform), await databaseCounts(db)];
  await sleep(idleSeconds * 1000);
  const [after, countedAfter] = [processorSeconds(platform), await databaseCounts(db)];
  return {
    seconds: ((after - before) * 60) / idleSeconds,
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
  const first = async () => ((await countUnanswered(grown, slugs)) < slugs.length ? true : undefined);
  if (!(await until(first, { timeoutMs: startMs }))) throw new Error("no application answers after the start");
  const theirs = performance.now() - startedAtMs;
  await allAnswer(grown, slugs);
  return { theirs, ours: performance.now() - startedAtMs };
}

async function statusOf(port: number, slug: string): Promise<number> {
  return (await ask(port, slug, "/")).status;
}
