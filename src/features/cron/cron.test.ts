import assert from "node:assert/strict";
import { test } from "node:test";
import { testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken, type Called } from "../../../test/support/test-platform.ts";
import { sql } from "kysely";
import { newId } from "../../kit/ids.ts";
import { adoptRuns, importCrons, pruneRuns } from "./cron.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme", { maxProjects: 100 });

type Job = Record<string, unknown> & { name: string };

async function newProject() {
  const project = await testProject(api.platform, org);
  const call = (method: string, rest: string, body?: unknown) =>
    api.call(method, `/v1/projects/${project.slug}/cron${rest}`, {
      token: org.member,
      ...(body === undefined ? {} : { body }),
    });
  return {
    ...project,
    call,
    set: (name: string, body: unknown) => call("PUT", `/${name}`, body),
    import: (crons: unknown) => call("POST", "/import", { crons }),
    jobs: async () => (await call("GET", "")).body["jobs"] as Job[],
    run: (name: string) => call("POST", `/${name}/run`),
    runs: async (name: string, cursor = "") =>
      (await call("GET", `/${name}/runs${cursor}`)).body as {
        runs: Record<string, unknown>[];
        next_cursor: string | null;
      },
  };
}

const good = { schedule: "*/5 * * * *", path: "/tick" };
const paths = ({ body }: Called) => (body["details"] as { path: string }[]).map(({ path }) => path);

test("a job is created once, changed afterwards, and shows its next run", async () => {
  const project = await newProject();
  const created = await project.set("tick", { schedule: "  */5  *\t* * * ", path: "/tick" });
  assert.equal(created.status, 201);
  const { name, schedule, path, enabled, last_status, last_run_at, next_run_at } = created.body;
  assert.deepEqual(
    { name, schedule, path, enabled, last_status, last_run_at },
    { name: "tick", ...good, enabled: true, last_status: null, last_run_at: null },
  );
  assert.match(String(next_run_at), /:[0-5][05]:00\.000Z$/);
  assert.equal((await project.set("tick", { ...good, path: "/tock" })).status, 200);
  assert.deepEqual(
    (await project.jobs()).map((job) => job["path"]),
    ["/tock"],
  );
});

test("a change that leaves out `enabled` leaves it as it is; a disabled job has no next run", async () => {
  const project = await newProject();
  assert.equal((await project.set("tick", { ...good, enabled: false })).body["next_run_at"], null);
  assert.equal((await project.set("tick", { ...good, path: "/tock" })).body["enabled"], false);
  assert.equal((await project.set("tick", { ...good, enabled: true })).body["enabled"], true);
});

test("a due minute that no scheduler has handled survives a change that keeps the schedule", async () => {
  const project = await newProject();
  await project.set("tick", good);
  const due = new Date("2020-01-01T00:00:00Z");
  const { db } = api.database;
  await db.updateTable("cron_job").set({ next_run_at: due }).where("project_id", "=", project.id).execute();
  assert.equal((await project.set("tick", { ...good, path: "/tock" })).body["next_run_at"], due.toISOString());
  assert.notEqual(
    (await project.set("tick", { ...good, schedule: "* * * * *" })).body["next_run_at"],
    due.toISOString(),
  );
});

test("schedules, paths and names that are none are refused by field", async () => {
  const project = await newProject();
  for (const schedule of [
    "@daily",
    "0 0 * * MON",
    "0 0 31 2 *",
    "* * * *",
    "60 * * * *",
    "*/0 * * * *",
    "",
    "0 0 * * *\nx",
  ]) {
    const refused = await project.set("a", { ...good, schedule });
    assert.deepEqual([refused.status, ...paths(refused)], [400, "schedule"], schedule);
  }
  for (const path of [
    "tick",
    "",
    "//evil.test/",
    "/\\evil.test",
    "/a b",
    "/a\r\nX: y",
    "/a\u0000",
    "/é",
    `/${"a".repeat(512)}`,
    "http://evil.test/",
  ]) {
    const refused = await project.set("a", { ...good, path });
    assert.deepEqual([refused.status, ...paths(refused)], [400, "path"], path);
  }
  for (const path of ["/", "/a//b", "/a?b=http://c", `/${"a".repeat(511)}`, "/../etc", "/a\\b"])
    assert.ok((await project.set("a", { ...good, path })).status < 300, path);
  for (const name of ["-a", "a%20b", "a%2Fb", "a".repeat(65), ".."])
    assert.ok([400, 404].includes((await project.set(name, good)).status), name);
  const unknown = await project.set("a", { ...good, url: "x" });
  assert.equal(unknown.status, 400);
});

test("an import is all or nothing, and a second one changes nothing", async () => {
  const project = await newProject();
  const crons = [
    { path: "/api/daily", schedule: "0 0 * * *" },
    { path: "/api/daily", schedule: "0 12 * * *" },
    { path: "/api/hourly", schedule: "0 * * * *" },
  ];
  const refused = await project.import([
    ...crons,
    { path: "/x", schedule: "@hourly" },
    { path: "x", schedule: "0 * * * *" },
  ]);
  assert.deepEqual([refused.status, ...paths(refused)], [400, "crons.3.schedule", "crons.4.path"]);
  assert.deepEqual(await project.jobs(), []);
  const first = await project.import(crons);
  assert.equal(first.status, 200);
  assert.equal(first.body["imported"], 3);
  const before = await project.jobs();
  assert.deepEqual((await project.import(crons)).body, first.body);
  assert.deepEqual(await project.jobs(), before);
  const changes = await api.database.db
    .selectFrom("activity")
    .select("action")
    .where("project_id", "=", project.id)
    .where("action", "=", "cron.imported")
    .execute();
  assert.equal(changes.length, 1);
  for (const body of [{ crons: [{ ...crons[0], name: "x" }] }, { crons: {} }, {}, { crons, builds: [] }]) {
    assert.equal((await project.call("POST", "/import", body)).status, 400);
  }
  assert.equal((await project.import([])).body["imported"], 0);
});

test("an import neither overwrites another path's job nor enables a disabled one", async () => {
  const project = await newProject();
  await project.set("daily", { schedule: "1 1 * * *", path: "/mine" });
  await project.set("hourly", { schedule: "0 * * * *", path: "/hourly", enabled: false });
  await project.import([
    { path: "/daily", schedule: "0 0 * * *" },
    { path: "/hourly", schedule: "30 * * * *" },
  ]);
  const jobs = new Map((await project.jobs()).map((job) => [job.name, job]));
  assert.equal(jobs.size, 3);
  assert.equal(jobs.get("daily")?.["path"], "/mine");
  assert.deepEqual([jobs.get("hourly")?.["schedule"], jobs.get("hourly")?.["enabled"]], ["30 * * * *", false]);
});

test("twenty parallel imports of one file make its jobs once", async () => {
  const project = await newProject();
  const crons = [
    { path: "/a", schedule: "0 0 * * *" },
    { path: "/a", schedule: "0 1 * * *" },
  ];
  const answers = await Promise.all(Array.from({ length: 20 }, () => project.import(crons)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.equal((await project.jobs()).length, 2);
});

test("run now writes a run at once, leaves the schedule alone, and is skipped while another is under way", async () => {
  const project = await newProject();
  await project.set("tick", { ...good, enabled: false });
  const [before] = await project.jobs();
  const first = await project.run("tick");
  assert.equal(first.status, 201);
  assert.deepEqual(
    [first.body["trigger"], first.body["status"], first.body["started_at"]],
    ["manual", "running", null],
  );
  const second = await project.run("tick");
  assert.deepEqual([second.status, second.body["status"], second.body["reason"]], [201, "skipped", "overlap"]);
  const { runs } = await project.runs("tick");
  assert.deepEqual(
    runs.map(({ id }) => id),
    [second.body["id"], first.body["id"]],
  );
  const [now] = await project.jobs();
  assert.equal(now?.["next_run_at"], before?.["next_run_at"]);
  assert.equal(now?.["last_status"], "skipped");
  assert.equal((await project.run("nobody")).status, 404);
});

test("runs come newest first, a hundred at a time, each once", async () => {
  const project = await newProject();
  const job_id = String((await project.set("tick", good)).body["id"]);
  const rows = Array.from({ length: 250 }, (_, i) => ({
    id: newId("run"),
    org_id: org.id,
    project_id: project.id,
    job_id,
    trigger: "manual" as const,
    // Several runs have the same time, as runs started by hand may.
    scheduled_at: new Date(Date.UTC(2026, 0, 1) + Math.floor(i / 3) * 60_000),
    status: "succeeded" as const,
  }));
  await api.database.db.insertInto("cron_run").values(rows).execute();
  const pages = [await project.runs("tick")];
  for (let last = pages[0]; last?.next_cursor; last = pages.at(-1))
    pages.push(await project.runs("tick", `?cursor=${encodeURIComponent(last.next_cursor)}`));
  assert.deepEqual(
    pages.map(({ runs }) => runs.length),
    [100, 100, 50],
  );
  const all = pages.flatMap(({ runs }) => runs);
  assert.equal(new Set(all.map(({ id }) => id)).size, 250);
  const times = all.map(({ scheduled_at }) => String(scheduled_at));
  assert.deepEqual(times, [...times].sort().toReversed());
  assert.equal((await project.call("GET", "/tick/runs?cursor=nonsense")).status, 400);
});

test("a deleted job is gone with its runs, and its name is free", async () => {
  const project = await newProject();
  await project.set("tick", good);
  await project.run("tick");
  assert.equal((await project.call("DELETE", "/tick")).status, 204);
  assert.equal((await project.call("DELETE", "/tick")).status, 404);
  assert.equal((await project.call("GET", "/tick/runs")).status, 404);
  assert.equal((await project.set("tick", good)).status, 201);
  assert.deepEqual((await project.runs("tick")).runs, []);
});

test("a deleted project's cron is closed", async () => {
  const project = await newProject();
  await project.set("tick", good);
  await api.database.db.updateTable("project").set({ deleted_at: new Date() }).where("id", "=", project.id).execute();
  for (const answer of [
    await project.call("GET", ""),
    await project.set("tick", good),
    await project.run("tick"),
    await project.call("DELETE", "/tick"),
  ]) {
    assert.deepEqual([answer.status, answer.body["code"]], [409, "project_deleted"]);
  }
});

test("activity names the job, and never its path, which may hold a secret", async () => {
  const project = await newProject();
  await project.set("tick", { ...good, path: "/tick?key=hunter2" });
  await project.set("tick", { ...good, path: "/tick?key=hunter2" });
  const rows = await api.database.db
    .selectFrom("activity")
    .select(["action", "target", "detail"])
    .where("project_id", "=", project.id)
    .execute();
  assert.deepEqual(
    rows.map(({ action, target }) => [action, target]),
    [["cron.set", "tick"]],
  );
  assert.ok(!JSON.stringify(rows).includes("hunter2"));
});

test("an import of thousands of jobs takes a few statements, and a change of all of them too", async () => {
  const project = await newProject();
  let statements = 0;
  const counted = api.database.db.withPlugin({
    transformQuery: ({ node }) => ((statements += 1), node),
    transformResult: async ({ result }) => result,
  });
  const put = (schedule: string) =>
    counted.transaction().execute((tx) =>
      importCrons(
        { tx, now: new Date() },
        { org_id: org.id, project_id: project.id },
        Array.from({ length: 2000 }, (_, index) => ({ path: `/${index}`, schedule })),
      ),
    );
  for (const [schedule, changed] of [
    ["* * * * *", 2000],
    ["* * * * *", 0],
    ["0 0 * * *", 2000],
  ] as const) {
    statements = 0;
    const imported = await put(schedule);
    assert.ok(imported !== "too_many");
    assert.deepEqual([imported.jobs.length, imported.changed], [2000, changed]);
    assert.ok(statements < 10, String(statements));
  }
});

test("of many jobs fewer runs are kept, so that a project's runs do not fill the disk", async () => {
  const project = await newProject();
  await project.import([good, { ...good, path: "/tock" }]);
  const { rows } = await sql<{ id: string }>`select id from cron_job where project_id = ${project.id}`.execute(
    api.database.db,
  );
  const ids = rows.map(({ id }) => id);
  await sql`insert into cron_run (id, org_id, project_id, job_id, trigger, scheduled_at, status)
    select 'run_' || j.id || n, j.org_id, j.project_id, j.id, 'schedule', now() - make_interval(mins => n), 'succeeded'
    from cron_job j, generate_series(1, 60) n where j.project_id = ${project.id}`.execute(api.database.db);
  const left = async (keep: number, ofProject: number) => {
    await pruneRuns(api.database.db, ids, keep, ofProject);
    return Promise.all(["tick", "tock"].map(async (name) => (await project.runs(name)).runs.length));
  };
  assert.deepEqual(await left(50, 1000), [50, 50]);
  assert.deepEqual(await left(50, 60), [30, 30]);
  assert.deepEqual(await left(50, 2), [10, 10], "a few are kept of every job");
});

test("a run that was called is never taken over to be called again; one that still waits is", async () => {
  const project = await newProject();
  await project.set("tick", good);
  const insert = (id: string, started: boolean, minute: number) =>
    sql`
    insert into cron_run (id, org_id, project_id, job_id, trigger, scheduled_at, status, started_at, lease_owner, lease_until)
    select ${`run_${id}`}, org_id, project_id, id, 'schedule', now() - make_interval(mins => ${minute}), 'running',
      case when ${started} then now() end, 'ended', now() - interval '1 second'
    from cron_job where project_id = ${project.id}`.execute(api.database.db);
  await insert("called", true, 1);
  await insert("waiting", false, 2);
  const adopted = await adoptRuns(api.database.db, "here", 100);
  assert.deepEqual(
    adopted.filter(({ project_id }) => project_id === project.id).map(({ id }) => id),
    ["run_waiting"],
  );
});

test("a job has either a path or a command, also in an import, which names it after its command", async () => {
  const project = await newProject();
  const { schedule } = good;
  for (const wrong of [
    { schedule },
    { ...good, command: "true" },
    { schedule, command: "" },
    { schedule, command: "a\0b" },
  ])
    assert.equal((await project.set("x", wrong)).status, 400, JSON.stringify(wrong));
  const set = await project.set("x", { schedule, command: "npm run report" });
  assert.deepEqual([set.status, set.body["path"], set.body["command"]], [201, null, "npm run report"]);
  assert.deepEqual(paths(await project.import([{ schedule }])), ["crons.0.path"]);
  const imported = await project.import([{ schedule: "0 1 * * *", command: "npm run report" }, good]);
  assert.deepEqual(imported.body["jobs"], ["npm-run-report", "tick"]);
  assert.equal((await project.set("x", good)).body["command"], null);
});

test("restore brings back what the last change replaced, also an import's and a disabled job, and the activity keeps the earlier values", async () => {
  const project = await newProject();
  const state = ({ body }: Called) => [body["schedule"], body["path"], body["command"], body["enabled"]];
  await project.set("tick", good);
  assert.equal((await project.call("POST", "/tick/restore")).body["code"], "conflict");
  assert.equal((await project.call("POST", "/never/restore")).status, 404);
  await project.set("tick", { schedule: "0 0 1 1 *", command: "true", enabled: false });
  const restored = await project.call("POST", "/tick/restore");
  assert.deepEqual([restored.status, ...state(restored)], [200, good.schedule, good.path, null, true]);
  assert.ok(restored.body["next_run_at"]);
  assert.deepEqual(state(await project.call("POST", "/tick/restore")), ["0 0 1 1 *", null, "true", false]);
  await project.call("POST", "/tick/restore");
  assert.equal((await project.import([{ ...good, schedule: "1 1 * * *" }])).status, 200);
  assert.deepEqual(state(await project.call("POST", "/tick/restore")), [good.schedule, good.path, null, true]);
  const { text } = await api.call("GET", `/v1/projects/${project.slug}/timeline`, { token: org.member });
  assert.match(
    text,
    /"before":\{"path":"\/tick","command":null,"enabled":true,"schedule":"\*\/5 \* \* \* \*"\}|"before":\{[^}]*"\/tick"/,
  );
});

test("a token in approval mode changes and disables jobs, but a human decides about a new command", async () => {
  const project = await newProject();
  const { schedule } = good;
  await project.set("report", { schedule, command: "npm run report" });
  const { text: token } = await testToken(api.database.db, org.id, { approval_mode: true });
  const path = `/v1/projects/${project.slug}/cron`;
  const set = (body: object) => api.call("PUT", `${path}/report`, { token, body });
  const lines = (crons: object[]) => api.call("POST", `${path}/import`, { token, body: { crons } });
  assert.equal((await set({ schedule: "0 2 * * *", command: "npm run report", enabled: false })).status, 200);
  assert.equal((await lines([good, { schedule: "0 2 * * *", command: "npm run report" }])).status, 200);
  for (const asked of [
    await set({ schedule, command: "drop tables" }),
    await lines([{ schedule, command: "drop tables" }]),
  ])
    assert.equal(asked.body["code"], "approval_required", asked.text);
  assert.equal((await set(good)).status, 200);
});
