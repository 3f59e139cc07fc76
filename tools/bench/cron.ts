import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { start } from "../../src/kit/exec.ts";
import { newId } from "../../src/kit/ids.ts";
import { silentLog } from "../../src/kit/log.ts";
import { until } from "../../src/kit/until.ts";
import { createDriver } from "../../src/reconcile/driver.ts";
import { cronTask } from "../../src/reconcile/cron/cron-task.ts";
import type { Platform } from "../../src/reconcile/platform.ts";
import { openVault } from "../../src/store/vault.ts";
import { openWakeups } from "../../src/store/wakeups.ts";
import { cronWorld, deployedProject } from "../../test/support/cron-platform.ts";
import { testDatabase, type TestDatabase } from "../../test/support/database.ts";
import type { CronHits } from "./cron-subject.ts";
import { timeRow, type BenchRow } from "./row.ts";

const projects = 100;
const jobsPerProject = 100;
const jobs = projects * jobsPerProject;
const atOnce = 500;
const beforeMs = 4000;
const subject = fileURLToPath(new URL("cron-subject.ts", import.meta.url));

/**
 * Lets 10,000 jobs of 100 projects come due in one minute and measures how late each call reaches the application. Compares with the same
 * number of direct calls. Throws if a run is lost or doubled.
 */
export async function measureCron(): Promise<BenchRow[]> {
  const bare = await bareCalls();
  const ours = await scheduled();
  const quantile = (times: readonly number[], share: number) => times[Math.ceil(times.length * share) - 1] as number;
  return [0.5, 0.99, 1].map((share) => {
    const name = `cron, ${jobs.toLocaleString("en")} jobs due in one minute, lateness ${share === 1 ? "max" : `p${share * 100}`} (lost 0, doubled 0)`;
    return timeRow(name, "as many bare calls", {
      ours: quantile(ours, share),
      theirs: quantile(bare, share),
      goal: null,
    });
  });
}

/** Returns how long after the common start each direct call arrives, sorted. */
async function bareCalls(): Promise<number[]> {
  const app = await startApp();
  const agent = new Agent({ keepAlive: false, maxSockets: atOnce });
  const startMs = Date.now();
  const call = (i: number) =>
    new Promise<void>((resolve, reject) => {
      const headers = { "x-cron-execution-id": String(i) };
      get({ agent, host: "127.0.0.1", port: app.port, headers }, (response) =>
        response.resume().once("end", resolve),
      ).once("error", reject);
    });
  await Promise.all(Array.from({ length: jobs }, (_, i) => call(i)));
  return (await app.end()).map(([, atMs]) => atMs - startMs).sort((a, b) => a - b);
}

/** Returns how late each scheduled call arrives, sorted. */
async function scheduled(): Promise<number[]> {
  const app = await startApp();
  const database = await testDatabase();
  const folder = await mkdtemp(join(tmpdir(), "berth-bench-cron-"));
  const wakeups = await openWakeups({ connection: database.connection, log: silentLog });
  try {
    const vault = openVault({ keyFile: join(folder, "key") });
    await fill(database, vault, { host: "127.0.0.1", port: app.port });
    // Set the clock to just before a full minute instead of waiting for one.
    const offsetMs = 60_000 - (Date.now() % 60_000) - beforeMs;
    const dueMs = Date.now() + offsetMs + beforeMs;
    await database.db
      .updateTable("cron_job")
      .set({ next_run_at: new Date(dueMs) })
      .execute();
    const clock = { now: () => new Date(Date.now() + offsetMs) };
    const platform: Platform = cronWorld({
      db: database.db,
      vault,
      clock,
      owner: "bench",
      settings: { concurrent: 1000, concurrentPerProject: 50 },
    });
    const driver = createDriver({ tasks: [cronTask(platform)], wakeups, log: silentLog });
    await driver.start();
    await allEnded(database);
    await driver.stop();
    return checked(await app.end(), await runIds(database, dueMs), dueMs - offsetMs);
  } finally {
    await wakeups.close();
    await database.drop();
    await rm(folder, { recursive: true });
  }
}

async function fill(
  { db }: TestDatabase,
  vault: Platform["vault"],
  address: { host: string; port: number },
): Promise<void> {
  for (let i = 0; i < projects; i += 1) {
    const { org_id, project_id } = await deployedProject({ db, vault }, address);
    const rows = Array.from({ length: jobsPerProject }, (_, j) => {
      return {
        id: newId("job"),
        org_id,
        project_id,
        name: `j${j}`,
        schedule: "* * * * *",
        path: `/j${j}`,
        next_run_at: new Date(0),
      };
    });
    await db.insertInto("cron_job").values(rows).execute();
  }
}

async function allEnded({ db }: TestDatabase): Promise<void> {
  const ended = await until(
    async () => {
      const { count } = await db
        .selectFrom("cron_run")
        .select((of) => of.fn.countAll<number>().as("count"))
        .where("status", "=", "succeeded")
        .executeTakeFirstOrThrow();
      return count >= jobs ? true : undefined;
    },
    { timeoutMs: 60_000, firstMs: 1000, atMostMs: 1000 },
  );
  if (ended === undefined) throw new Error("the jobs did not all run within a minute");
}

async function runIds({ db }: TestDatabase, dueMs: number): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom("cron_run")
    .select("id")
    .where("scheduled_at", "=", new Date(dueMs).toISOString())
    .execute();
  return new Set(rows.map(({ id }) => id));
}

function checked(hits: CronHits, ids: ReadonlySet<string>, dueMs: number): number[] {
  const called = new Set(hits.map(([id]) => id));
  const lost = [...ids].filter((id) => !called.has(id)).length + (jobs - ids.size);
  const doubled = hits.length - called.size;
  if (lost > 0 || doubled > 0) throw new Error(`${lost} runs were lost and ${doubled} doubled`);
  return hits.map(([, atMs]) => atMs - dueMs).sort((a, b) => a - b);
}

/** Starts the application in its own process. */
async function startApp(): Promise<{ port: number; end: () => Promise<CronHits> }> {
  const child = start({ file: process.execPath, args: [subject] });
  child.stderr.pipe(process.stderr);
  const lines = createInterface(child.stdout);
  const line = async () => ((await once(lines, "line", { signal: AbortSignal.timeout(60_000) })) as [string])[0];
  const port = Number(await line());
  const end = async () => {
    child.stdin.end();
    return JSON.parse(await line()) as CronHits;
  };
  return { port, end };
}
