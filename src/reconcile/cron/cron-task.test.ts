// Drawn with other operation files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import {
  addJob,
  cronWorld,
  deployedProject,
  startCronApp,
  type CronApp,
  type CronProject,
} from "../../../test/support/cron-platform.ts";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { readyReplica } from "../../../test/support/fixtures.ts";
import { isCalled } from "../../features/cron/cron.ts";
import { until } from "../../kit/until.ts";
import type { InstanceAddress } from "../../ports/runtime.ts";
import type { Vault } from "../../store/vault.ts";
import type { Task, CronSettings, Platform } from "../platform.ts";
import { cronTask } from "./cron-task.ts";
import { guardMs } from "../../../test/support/eventually.ts";

let database: TestDatabase;
let vault: Vault;

before(async () => {
  database = await testDatabase();
  ({ vault } = database);
});
after(() => database.drop());

// A scheduler serves every project of its database.
beforeEach(async () => void (await database.db.deleteFrom("cron_job").execute()));

const noon = Date.parse("2026-03-01T12:00:00.000Z");
const minuteMs = 60_000;
const never = new AbortController().signal;

/** A scheduler whose clock stops until the test sets it. */
interface Scheduler {
  readonly task: Task;
  readonly project: CronProject;
  /** Sets the clock and runs the task once. */
  at(ms: number): Promise<void>;
  /** Returns the results of the job's runs, oldest first, once none is running. */
  runs(): Promise<Run[]>;
}

type Run = {
  status: string;
  reason: string | null;
  scheduled_at: string;
  http_status: number | null;
  exit_code: number | null;
  response_excerpt: string | null;
  started_at: string | null;
  finished_at: string | null;
  id: string;
  trigger: string;
};

async function scheduler(
  address: InstanceAddress | null,
  options: {
    settings?: Partial<CronSettings>;
    project?: CronProject;
    owner?: string;
    appUrl?: Platform["appUrl"];
  } = {},
): Promise<Scheduler> {
  const project = options.project ?? (await deployedProject({ db: database.db, vault }, address));
  let now = noon;
  const platform = cronWorld({
    db: database.db,
    vault,
    clock: { now: () => new Date(now) },
    owner: options.owner ?? `test-${Math.random()}`,
    ...(options.settings === undefined ? {} : { settings: options.settings }),
    ...(options.appUrl === undefined ? {} : { appUrl: options.appUrl }),
  });
  const task = cronTask(platform);
  return {
    task,
    project,
    async at(ms) {
      now = ms;
      await task.run(never);
    },
    async runs() {
      const settled = await until(
        async () => ((await read(project)).some(({ status }) => status === "running") ? undefined : true),
        { timeoutMs: guardMs },
      );
      assert.ok(settled, "a run is still under way");
      return read(project);
    },
  };
}

function read(project: CronProject): Promise<Run[]> {
  return database.db
    .selectFrom("cron_run")
    .selectAll()
    .where("project_id", "=", project.project_id)
    .orderBy("scheduled_at")
    .orderBy("id")
    .execute();
}

const minuteOf = ({ scheduled_at }: Run) => (Date.parse(scheduled_at) - noon) / minuteMs;
const outline = (runs: readonly Run[]) => runs.map((run) => [minuteOf(run), run.status, run.reason]);

async function withApp(
  work: (app: CronApp) => Promise<void>,
  answer?: Parameters<typeof startCronApp>[0],
): Promise<void> {
  const app = await startCronApp(answer);
  try {
    await work(app);
  } finally {
    await app.close();
  }
}

test("an application that redirects plain requests does its job, because the call says that visitors come over HTTPS", () =>
  withApp(
    async (app) => {
      const { at, runs, project } = await scheduler(app.address, { appUrl: (hostname) => `https://${hostname}:8443` });
      await addJob(database.db, project, { name: "a", next_run_at: new Date(noon) });
      await at(noon + 20);
      const [run] = await runs();
      assert.deepEqual([run?.http_status, run?.response_excerpt], [200, "job done"]);
    },
    (req, res) => {
      const isSecure = req.headers["x-forwarded-proto"] === "https";
      if (isSecure) return void res.end("job done");
      res.writeHead(301, { location: `https://${req.headers.host}${req.url}` }).end();
    },
  ));

test("a due job is called once, by GET, with its path as it stands and the headers that say what for", () =>
  withApp(async (app) => {
    const { at, runs, project } = await scheduler(app.address);
    await addJob(database.db, project, { name: "a", path: "/a/../b?x=%2f&y=[1]", next_run_at: new Date(noon) });
    await at(noon - 1);
    assert.equal(app.hits.length, 0);
    await at(noon + 20);
    // The call continues after the task's pass, and the clock has passed its time limit by now.
    await runs();
    await at(noon + 30);
    const [run] = await runs();
    assert.equal(run?.status, "succeeded");
    assert.equal(run?.http_status, 200);
    assert.equal(run?.response_excerpt, "done");
    assert.equal(run?.scheduled_at, new Date(noon).toISOString());
    assert.equal(run?.started_at, new Date(noon + 20).toISOString());
    assert.equal(app.hits.length, 1);
    const { method, url, headers } = app.hits[0] as (typeof app.hits)[number];
    assert.deepEqual([method, url], ["GET", "/a/../b?x=%2f&y=[1]"]);
    const expected = {
      host: `${project.project_id}.test`,
      "x-forwarded-proto": "http",
      "user-agent": "berth-cron/1.0",
      "x-cron-schedule": "* * * * *",
      "x-cron-execution-id": run?.id,
      "x-cron-scheduled-at": new Date(noon).toISOString(),
      authorization: "Bearer cron secret",
    };
    assert.deepEqual(Object.fromEntries(Object.keys(expected).map((name) => [name, headers[name]])), expected);
  }));

test("a redirect is recorded and not followed, an error fails the run", () =>
  withApp(
    async (app) => {
      const { at, runs, project } = await scheduler(app.address);
      for (const name of ["302", "404", "503"])
        await addJob(database.db, project, { name, next_run_at: new Date(noon) });
      await at(noon);
      const found = (await runs())
        .map(({ status, http_status }) => [http_status ?? 0, status] as const)
        .sort(([a], [b]) => a - b);
      assert.deepEqual(found, [
        [302, "succeeded"],
        [404, "failed"],
        [503, "failed"],
      ]);
      assert.equal(app.hits.length, 3);
    },
    (request, response) => response.writeHead(Number(request.url?.slice(1)), { location: "/elsewhere" }).end(),
  ));

test("4 KiB of the answer are kept, without secrets and without what a text column cannot hold", () =>
  withApp(
    async (app) => {
      const { at, runs, project } = await scheduler(app.address);
      await addJob(database.db, project, { name: "a", next_run_at: new Date(noon) });
      await at(noon);
      const text = (await runs())[0]?.response_excerpt ?? "";
      assert.match(text, /^secret: \[redacted\]\uFFFD/);
      assert.ok(Buffer.byteLength(text) <= 4096 && Buffer.byteLength(text) > 4090);
      assert.match(text, /é$/);
    },
    (_, response) => response.end(`secret: cron secret\0${"é".repeat(50_000)}`),
  ));

test("an application that hangs, lies or hangs up costs its run and nothing else", async () => {
  const silent = createServer((socket) => socket.on("error", () => {}));
  const liar = createServer((socket) => socket.on("error", () => {}).end("HTTP/1.1 two hundred\r\n\r\n"));
  const quitter = createServer((socket) => socket.on("error", () => {}).once("data", () => socket.destroy()));
  const switcher = createServer((socket) =>
    socket
      .on("error", () => {})
      .once("data", () =>
        socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
      ),
  );
  const cut = createServer((socket) =>
    socket.on("error", () => {}).once("data", () => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")),
  );
  const expected = [
    [silent, "timeout", null],
    [liar, "failed", "invalid_answer"],
    [quitter, "failed", "connection_lost"],
    [switcher, "failed", "connection_lost"],
    [cut, "failed", "connection_lost"],
  ] as const;
  for (const [server, status, reason] of expected) {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const { at, runs, project } = await scheduler(
      { host: "127.0.0.1", port },
      { settings: { timeoutMs: status === "timeout" ? 200 : 60_000 } },
    );
    await addJob(database.db, project, { name: "a", next_run_at: new Date(noon) });
    await at(noon);
    assert.deepEqual(outline(await runs()), [[0, status, reason]]);
    server.close();
    const gone = await scheduler({ host: "127.0.0.1", port });
    await addJob(database.db, gone.project, { name: "a", next_run_at: new Date(noon) });
    await gone.at(noon);
    assert.deepEqual(outline(await gone.runs()), [[0, "failed", "unreachable"]]);
  }
  const nobody = await scheduler(null);
  await addJob(database.db, nobody.project, { name: "a", next_run_at: new Date(noon) });
  await nobody.at(noon);
  assert.deepEqual(outline(await nobody.runs()), [[0, "failed", "no_ready_replica"]]);
});

test("a run that is due before the application is ready waits for it", () =>
  withApp(async (app) => {
    const { at, runs, project } = await scheduler(null, { settings: { readyWaitMs: guardMs } });
    const { org_id, deployment_id } = project;
    await addJob(database.db, project, { name: "a", next_run_at: new Date(noon) });
    await at(noon);
    await readyReplica(database.db, { org_id, deployment_id, address: app.address });
    assert.deepEqual(outline(await runs()), [[0, "succeeded", null]]);
    assert.equal(app.hits.length, 1);
  }));

test("a minute that comes while the last run is under way is skipped", async () => {
  const answers: (() => void)[] = [];
  await withApp(
    async (app) => {
      const { at, runs, project } = await scheduler(app.address);
      await addJob(database.db, project, { name: "a", next_run_at: new Date(noon) });
      await at(noon);
      await until(() => (app.hits.length === 1 ? true : undefined), { timeoutMs: guardMs });
      await at(noon + minuteMs);
      assert.equal(await isCalled(database.db, [project.deployment_id]), true);
      for (const answer of answers) answer();
      await runs();
      assert.equal(await isCalled(database.db, [project.deployment_id]), false);
      await at(noon + 2 * minuteMs);
      for (const hit of await waitForHits(app, 2)) assert.ok(hit);
      for (const answer of answers) answer();
      assert.deepEqual(outline(await runs()), [
        [0, "succeeded", null],
        [1, "skipped", "overlap"],
        [2, "succeeded", null],
      ]);
    },
    (_, response) => void answers.push(() => response.end()),
  );
});

async function waitForHits(app: CronApp, count: number) {
  await until(() => (app.hits.length >= count ? true : undefined), { timeoutMs: guardMs });
  return app.hits;
}

test("disabled, deleted, suspended, nothing deployed: each due minute is skipped with its reason", () =>
  withApp(async (app) => {
    const { db } = database;
    const blocks: readonly [string, (project: CronProject) => Promise<unknown>][] = [
      [
        "disabled",
        ({ project_id }) =>
          db.updateTable("cron_job").set({ enabled: false }).where("project_id", "=", project_id).execute(),
      ],
      [
        "project_deleted",
        ({ project_id }) =>
          db.updateTable("project").set({ deleted_at: new Date() }).where("id", "=", project_id).execute(),
      ],
      [
        "org_suspended",
        ({ org_id }) =>
          db.updateTable("organization").set({ suspended_at: new Date() }).where("id", "=", org_id).execute(),
      ],
      [
        "nothing_deployed",
        ({ deployment_id }) =>
          db.updateTable("deployment").set({ status: "retired" }).where("id", "=", deployment_id).execute(),
      ],
    ];
    for (const [reason, block] of blocks) {
      const { at, runs, project } = await scheduler(app.address);
      await addJob(db, project, { name: "a", next_run_at: new Date(noon) });
      await block(project);
      await at(noon);
      await runs();
      await at(noon + minuteMs);
      assert.deepEqual(outline(await runs()), [
        [0, "skipped", reason],
        [1, "skipped", reason],
      ]);
    }
    assert.equal(app.hits.length, 0);
  }));

test("after a downtime the latest start runs if it is at most 10 minutes old, the rest was missed", () =>
  withApp(async (app) => {
    const { at, runs, project } = await scheduler(app.address);
    await addJob(database.db, project, { name: "a", schedule: "*/15 * * * *", next_run_at: new Date(noon) });
    await at(noon + 40 * minuteMs);
    assert.deepEqual(outline(await runs()), [
      [0, "missed", "too_late"],
      [15, "missed", "too_late"],
      [30, "succeeded", null],
    ]);
    const late = await scheduler(app.address);
    await addJob(database.db, late.project, { name: "a", schedule: "*/15 * * * *", next_run_at: new Date(noon) });
    await late.at(noon + 40 * minuteMs + 1);
    assert.deepEqual(
      outline(await late.runs()).map(([minute, status]) => [minute, status]),
      [
        [0, "missed"],
        [15, "missed"],
        [30, "missed"],
      ],
    );
    await late.at(noon + 45 * minuteMs);
    assert.deepEqual(outline(await late.runs()).at(-1), [45, "succeeded", null]);
  }));

test("a year of downtime is a bounded number of rows", () =>
  withApp(async (app) => {
    const { at, runs, project } = await scheduler(app.address, { settings: { runsKept: 101 } });
    await addJob(database.db, project, { name: "a", next_run_at: new Date(noon) });
    await at(noon + 365 * 24 * 60 * minuteMs);
    const all = await runs();
    assert.equal(all.length, 101);
    assert.equal(app.hits.length, 1);
    assert.equal(new Set(all.map(({ scheduled_at }) => scheduled_at)).size, 101);
  }));

test("a clock that is set back runs no minute twice and stalls no job", (t) => {
  // Prevents the random pruning of the history, which a year of missed minutes fills.
  t.mock.method(Math, "random", () => 0.5);
  return withApp(async (app) => {
    const { at, runs, project } = await scheduler(app.address);
    await addJob(database.db, project, { name: "a", next_run_at: new Date(noon) });
    const year = 365 * 24 * 60;
    for (const minute of [0, 1, 2, year, 1, 2, 3, 4]) {
      await at(noon + minute * minuteMs);
      await runs();
    }
    const called = (await runs()).filter(({ status }) => status === "succeeded").map(minuteOf);
    assert.deepEqual(called, [0, 1, 2, 3, 4, year]);
    assert.equal(app.hits.length, 6);
  });
});

test("one jump of the clock, a day ahead and back, loses no run: it writes one missed row, and tomorrow's minutes are called", () =>
  withApp(async (app) => {
    const { at, runs, project } = await scheduler(app.address);
    await addJob(database.db, project, { name: "a", next_run_at: new Date(noon), updated_at: new Date(noon - 1) });
    const day = 24 * 60;
    for (const minute of [0, 1, day]) {
      await at(noon + minute * minuteMs);
      await runs();
    }
    assert.deepEqual(outline(await runs()), [
      [0, "succeeded", null],
      [1, "succeeded", null],
      [day - 1, "missed", "too_late"],
      [day, "succeeded", null],
    ]);
    for (const minute of [2, 3, day - 2, day - 1, day, day + 1]) {
      await at(noon + minute * minuteMs);
      await runs();
    }
    const called = (await runs()).filter(({ status }) => status === "succeeded").map(minuteOf);
    assert.deepEqual(called, [0, 1, 2, 3, day - 2, day - 1, day, day + 1]);
    assert.equal(app.hits.length, 8);
  }));

test("a job with a command is a one-off command with the id of its run, once a minute, and skipped while it runs", async () => {
  const { db } = database;
  const { at, runs, project } = await scheduler(null);
  await addJob(db, project, { name: "a", next_run_at: new Date(noon), path: "", command: "npm run report" });
  await at(noon);
  const found = () => db.selectFrom("run").selectAll().where("project_id", "=", project.project_id).execute();
  const asked = await until(async () => (await found())[0], { timeoutMs: guardMs });
  assert.deepEqual(
    [asked?.command, asked?.requested_by, asked?.deployment, asked?.token_id, asked?.timeout_seconds],
    ["npm run report", "cron job a", 1, null, 3600],
  );
  await at(noon + minuteMs);
  const end = { status: "failed", exit_code: 3, finished_at: new Date() } as const;
  await db
    .updateTable("run")
    .set(end)
    .where("id", "=", asked?.id ?? "")
    .execute();
  const [first, second] = await runs();
  assert.deepEqual([first?.id, first?.status, first?.exit_code, first?.http_status], [asked?.id, "failed", 3, null]);
  assert.deepEqual([second?.status, second?.reason, (await found()).length], ["skipped", "overlap", 1]);
});

test("two schedulers on one database call each job once a minute", () =>
  withApp(async (app) => {
    const first = await scheduler(app.address, { owner: "first" });
    const second = await scheduler(app.address, { owner: "second", project: first.project });
    for (let i = 0; i < 300; i += 1)
      await addJob(database.db, first.project, { name: `j${i}`, next_run_at: new Date(noon) });
    for (const minute of [0, 1, 2]) {
      await Promise.all([first.at(noon + minute * minuteMs), second.at(noon + minute * minuteMs + 3)]);
      await first.runs();
    }
    const ids = app.hits.map(({ headers }) => headers["x-cron-execution-id"]);
    assert.equal(ids.length, 900);
    assert.equal(new Set(ids).size, 900);
    assert.deepEqual(new Set((await first.runs()).map(({ status }) => status)), new Set(["succeeded"]));
  }));

test("a run whose scheduler died in the call is unknown and not made again; one that it had not begun is", () =>
  withApp(async (app) => {
    const { db } = database;
    const { at, runs, project } = await scheduler(app.address);
    const [job_id, other_id] = [
      await addJob(db, project, { name: "a", next_run_at: new Date(noon + minuteMs) }),
      await addJob(db, project, { name: "b", next_run_at: new Date(noon + minuteMs) }),
    ];
    const row = {
      org_id: project.org_id,
      project_id: project.project_id,
      trigger: "schedule",
      scheduled_at: new Date(noon),
      status: "running",
      lease_owner: "somebody who died",
      lease_until: new Date(Date.now() - 1),
    } as const;
    await db
      .insertInto("cron_run")
      .values([
        { ...row, id: "run_begun", job_id, started_at: new Date(noon) },
        { ...row, id: "run_waiting", job_id: other_id },
      ])
      .execute();
    await at(noon + 1000);
    const found = (await runs()).map(({ id, status, reason }) => [id, status, reason]);
    assert.deepEqual(found, [
      ["run_begun", "unknown", "interrupted"],
      ["run_waiting", "succeeded", null],
    ]);
    assert.deepEqual(
      app.hits.map(({ url }) => url),
      ["/b"],
    );
  }));

test("after a day of downtime every due minute of many jobs has its row, as far back as runs are kept", () =>
  withApp(async (app) => {
    const { at, runs, project } = await scheduler(app.address, { settings: { runsKept: 600 } });
    const names = Array.from({ length: 40 }, (_, index) => `job-${index}`);
    for (const name of names) await addJob(database.db, project, { name, next_run_at: new Date(noon) });
    await at(noon + 500 * minuteMs);
    const hits = () => app.hits.length;
    await waitForHits(app, names.length);
    const written = await runs();
    assert.deepEqual([written.length, hits()], [names.length * 501, names.length]);
    assert.deepEqual(
      written.filter(({ status }) => status !== "missed").map(minuteOf),
      names.map(() => 500),
    );
    // The next scheduler, because a clock that jumps in a running one is no downtime.
    await (await scheduler(app.address, { project, settings: { runsKept: 600 } })).at(noon + 2000 * minuteMs);
    const late = (await runs()).filter((run) => minuteOf(run) > 500);
    assert.equal(late.length, names.length * 600);
  }));

test("a run that found no free place within 10 minutes was missed", () =>
  withApp(async (app) => {
    const { at, runs, project } = await scheduler(app.address);
    const job_id = await addJob(database.db, project, {
      name: "a",
      schedule: "0 0 1 1 *",
      next_run_at: new Date(noon + 1e9),
    });
    await database.db
      .insertInto("cron_run")
      .values({
        id: "run_old",
        org_id: project.org_id,
        project_id: project.project_id,
        job_id,
        trigger: "manual",
        scheduled_at: new Date(noon),
        status: "running",
      })
      .execute();
    await at(noon + 10 * minuteMs + 1);
    assert.deepEqual(outline(await runs()), [[0, "missed", "too_late"]]);
  }));

test("a project whose calls hang delays no other project's", async () => {
  const held: (() => void)[] = [];
  await withApp(
    async (app) => {
      const hog = await scheduler(app.address, { settings: { concurrent: 8, concurrentPerProject: 4 } });
      const other = await deployedProject({ db: database.db, vault }, app.address);
      for (let i = 0; i < 50; i += 1)
        await addJob(database.db, hog.project, { name: `slow${i}`, next_run_at: new Date(noon) });
      await addJob(database.db, other, { name: "fast", next_run_at: new Date(noon) });
      await hog.at(noon);
      const done = await until(async () => (await read(other)).find(({ status }) => status === "succeeded"), {
        timeoutMs: guardMs,
      });
      assert.ok(done);
      assert.equal(app.hits.filter(({ url }) => url.startsWith("/slow")).length, 4);
      for (let i = 0; i < 50; i += 4) {
        await waitForHits(app, Math.min(51, i + 5));
        for (const answer of held.splice(0)) answer();
      }
      const runs = await until(
        async () =>
          (await read(hog.project)).every(({ status }) => status === "succeeded")
            ? true
            : held.splice(0).forEach((answer) => answer()),
        { timeoutMs: guardMs },
      );
      assert.ok(runs);
    },
    (request, response) => (request.url === "/fast" ? response.end() : void held.push(() => response.end())),
  );
});

test("a scheduler that is told to end gives its waiting runs back and keeps the ends of its calls", async () => {
  const held: (() => void)[] = [];
  await withApp(
    async (app) => {
      const first = await scheduler(app.address, { settings: { concurrentPerProject: 1 } });
      for (const name of ["a", "b"])
        await addJob(database.db, first.project, { name, schedule: "0 12 * * *", next_run_at: new Date(noon) });
      await first.at(noon);
      await waitForHits(app, 1);
      const ended = first.task.settle?.();
      const waits = async () => (await read(first.project)).some(({ started_at }) => started_at === null) || undefined;
      await until(waits, { timeoutMs: guardMs });
      for (const answer of held.splice(0)) answer();
      await ended;
      const second = await scheduler(app.address, { project: first.project });
      await second.at(noon + 1000);
      await waitForHits(app, 2);
      for (const answer of held.splice(0)) answer();
      assert.deepEqual(outline(await second.runs()), [
        [0, "succeeded", null],
        [0, "succeeded", null],
      ]);
      assert.equal(app.hits.length, 2);
    },
    (_, response) => void held.push(() => response.end()),
  );
});

test("a thousand and more runs of a job do not pile up", () =>
  withApp(async (app) => {
    const { at, runs, project } = await scheduler(app.address, { settings: { runsKept: 10 } });
    await addJob(database.db, project, { name: "a", next_run_at: new Date(noon) });
    for (let minute = 0; minute < 200; minute += 1) {
      await at(noon + minute * minuteMs);
      await at(noon + minute * minuteMs + 1);
    }
    const kept = await runs();
    assert.ok(kept.length < 150, `${kept.length} runs are kept`);
    assert.equal(minuteOf(kept.at(-1) as Run), 199);
  }));
