// Drawn with other operation files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { addJob, deployedProject, fastClock, startCronApp } from "../../../test/support/cron-platform.ts";
import type { CronSchedulerInput } from "../../../test/support/cron-scheduler-process.ts";
import { testDatabase } from "../../../test/support/database.ts";
import { runsAll } from "../../../test/support/draw-cases.ts";
import { startNode } from "../../../test/support/node-process.ts";
import { until } from "../../kit/until.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { openVault } from "../../store/vault.ts";
import { guardMs } from "../../../test/support/eventually.ts";

const script = fileURLToPath(new URL("../../../test/support/cron-scheduler-process.ts", import.meta.url));
const kills = runsAll ? 50 : 8;
const jobs = 10;
const random = seededRandom();
const minuteMs = 60_000;
// One minute of the schedulers' clock lasts 600 ms.
const speed = 100;

async function startScheduler(input: CronSchedulerInput) {
  const child = startNode([script]);
  let complaint = "";
  child.stderr.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
  child.stdin.end(JSON.stringify(input));
  await Promise.race([
    once(child.stdout, "data"),
    once(child, "exit").then(() => assert.fail(`the scheduler did not start: ${complaint}`)),
  ]);
  return child;
}

test("kills around the minute, two schedulers: every due minute has its one row, and none is delivered twice", async (t) => {
  const database = await testDatabase();
  const folder = await mkdtemp(join(tmpdir(), "berth-cron-"));
  const keyFile = join(folder, "key");
  const app = await startCronApp((_, response) => void setTimeout(() => response.end(), 10));
  try {
    const { db } = database;
    const project = await deployedProject({ db, vault: openVault({ keyFile }) }, app.address);
    const fromMs = Date.parse("2026-03-01T12:00:00.000Z");
    for (let i = 0; i < jobs; i += 1) await addJob(db, project, { name: `j${i}`, next_run_at: new Date(fromMs) });
    const clock = { fromMs, startMs: Date.now(), speed };
    const input = { connection: database.connection, keyFile, clock };
    const schedulers = await Promise.all([startScheduler(input), startScheduler(input)]);
    for (let kill = 0; kill < kills; kill += 1) {
      // The kill comes shortly before or after the minute, when the scheduler writes the rows and makes the calls.
      const toMinute = (minuteMs - (fastClock(clock).now().getTime() % minuteMs)) / speed;
      await sleep(Math.max(0, toMinute - 5 + random() * 25));
      schedulers[kill % 2]?.kill("SIGKILL");
      schedulers[kill % 2] = await startScheduler(input);
    }
    const calledAgainAfter = fastClock(clock).now().toISOString();
    const isCalledAgain = async () => {
      const query = db.selectFrom("cron_run").select("job_id").distinct().where("status", "=", "succeeded");
      return (await query.where("scheduled_at", ">", calledAgainAfter).execute()).length === jobs || undefined;
    };
    assert.ok(await until(isCalledAgain, { timeoutMs: guardMs }), "after the kills each job is called again");
    const settled = await until(
      async () =>
        (
          await db
            .selectFrom("cron_run")
            .select("id")
            .where("status", "=", "running")
            .where("started_at", "<", new Date(fastClock(clock).now().getTime() - 5 * minuteMs).toISOString())
            .execute()
        ).length === 0
          ? true
          : undefined,
      { timeoutMs: guardMs },
    );
    assert.ok(settled, "a run of a dead scheduler stays under way");
    for (const scheduler of schedulers) scheduler.kill("SIGTERM");
    await Promise.all(schedulers.map((scheduler) => once(scheduler, "exit")));
    const rows = await db.selectFrom("cron_run").select(["id", "job_id", "scheduled_at", "status", "reason"]).execute();
    const times = rows.map(({ scheduled_at }) => Date.parse(scheduled_at));
    const minutes = (Math.max(...times) - Math.min(...times)) / minuteMs + 1;
    const delivered = app.hits.map(({ headers }) => String(headers["x-cron-execution-id"]));
    const counts = Object.fromEntries(
      [...Map.groupBy(rows, ({ status, reason }) => `${status} ${reason ?? ""}`)].map(([status, of]) => [
        status.trim(),
        of.length,
      ]),
    );
    const told = JSON.stringify({ minutes, deliveries: delivered.length, ...counts });
    assert.equal(new Set(delivered).size, delivered.length, `a run was delivered twice: ${told}`);
    const perMinute = Map.groupBy(app.hits, ({ headers, url }) => `${url} ${String(headers["x-cron-scheduled-at"])}`);
    assert.ok(
      [...perMinute.values()].every(({ length }) => length === 1),
      `a minute was delivered twice: ${told}`,
    );
    assert.equal(rows.length, minutes * jobs, `a minute has no row: ${told}`);
    const succeeded = new Set(rows.filter(({ status }) => status === "succeeded").map(({ id }) => id));
    const called = new Set(delivered);
    assert.ok(
      [...succeeded].every((id) => called.has(id)),
      told,
    );
    const open = rows.filter(({ status }) => status === "running");
    assert.ok(
      open.every(({ id }) => !called.has(id)),
      `a delivered run stays under way: ${told}`,
    );
    t.diagnostic(told);
  } finally {
    await app.close();
    await database.drop();
    await rm(folder, { recursive: true });
  }
});
