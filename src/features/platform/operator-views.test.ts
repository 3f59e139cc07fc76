import assert from "node:assert/strict";
import { test } from "node:test";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import type { Result } from "../../contract/routes.ts";
import type { MachinePool, PooledMachine } from "../../ports/machines.ts";
import { recordCrash } from "../activity/activity.ts";
import { recordReports } from "../status/status.ts";
import { requestDatabase } from "../database/database.ts";
import { addMachineSample } from "../metrics/metrics.ts";
import { saveMachine, type MachineDescription } from "./platform.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "main");

async function get<T>(path: string): Promise<T> {
  const called = await api.call("GET", path, { token: org.operator });
  assert.equal(called.status, 200, called.text);
  return called.body as T;
}

const description: MachineDescription = {
  version: "1.2.3",
  cpus: 4,
  memory_bytes: 8e9,
  runtime: "process",
  network: "veth",
  isolation: ["seccomp"],
  missing: [],
  disk: {
    total_bytes: 100,
    available_bytes: 40,
    used_bytes: { databases: 7 },
    measured_at: "2026-01-02T03:04:05.678Z",
  },
  replica: { memory_bytes: 5e8, cpus: 2 },
};

test("a platform that nobody has looked at is unknown", async () => {
  const status = await get<Result<"status.get">>("/v1/status");
  assert.deepEqual([status.status, status.checked_at, status.checks], ["unknown", null, []]);
});

test("the status shows the worst of all checks, and alerts come newest first, a page at a time", async () => {
  const { db } = api.database;
  const platform = { ...api.platform, db, settings: { monitors: { coolDownMs: 0 } } };
  const subjects = Array.from({ length: 120 }, (_, index) => `main/p${String(index).padStart(3, "0")}`);
  const findings = ["", ...subjects].map((subject) => ({
    subject,
    status: "fail" as const,
    detail: "It is down.",
    hint: "Start it.",
    quiet: subject === "",
  }));
  const patience = { warnMs: 0, failMs: 0 };
  const disk = {
    name: "disk",
    machine: "host",
    patience,
    findings: [{ subject: "", status: "ok" as const, detail: "fine", hint: null }],
  };
  await recordReports(platform, [{ name: "databases", machine: "", patience, findings }, disk]);
  const status = await get<Result<"status.get">>("/v1/status");
  assert.deepEqual([status.status, status.open_alerts, status.checks.length], ["fail", 120, 122]);
  assert.deepEqual(
    status.checks
      .filter(({ check }) => check === "disk")
      .map(({ machine, subject, status: of, hint }) => [machine, subject, of, hint]),
    [["host", null, "ok", null]],
  );
  const first = await get<Result<"alerts.list">>("/v1/alerts");
  const second = await get<Result<"alerts.list">>(`/v1/alerts?cursor=${first.next_cursor}`);
  assert.deepEqual([first.alerts.length, second.alerts.length, second.next_cursor], [100, 20, null]);
  assert.equal(new Set([...first.alerts, ...second.alerts].map(({ subject }) => subject)).size, 120);
});

test("resolved alerts are listed when asked for", async () => {
  const platform = { ...api.platform, db: api.database.db, settings: { monitors: { coolDownMs: 0 } } };
  const patience = { warnMs: 0, failMs: 0 };
  await recordReports(platform, [
    { name: "databases", machine: "", patience, findings: [{ subject: "", status: "ok", detail: "fine", hint: null }] },
  ]);
  assert.deepEqual((await get<Result<"alerts.list">>("/v1/alerts")).alerts, []);
  const all = await get<Result<"alerts.list">>("/v1/alerts?all=true");
  assert.equal(all.alerts.length, 100);
  assert.ok(all.alerts.every(({ resolved_at }) => resolved_at !== null));
});

test("the overview counts what is there, what fails, what is slow, and what it all may use", async () => {
  const { platform } = api;
  const project = await testProject(platform, org, "shop");
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(platform, owner, { status: "succeeded" });
  await testDeployment(platform, owner, { build_id, number: 1, status: "active" });
  await testDeployment(platform, owner, { build_id, number: 2, status: "failed" });
  const { db } = platform;
  const failure = { stage: "boot", code: "crash_on_boot", summary: "It crashed.", hint: "", log_tail: [] };
  await db
    .updateTable("deployment")
    .set({ failure: JSON.stringify(failure) })
    .where("status", "=", "failed")
    .execute();
  await db.updateTable("project").set({ replicas: 3 }).where("id", "=", project.id).execute();
  await db.updateTable("deployment").set({ activated_at: new Date() }).where("status", "=", "active").execute();
  const crash = { out_of_memory: false, exit_code: 1, restarts: 1, next_start_in_ms: 1000 };
  await recordCrash(db, { ...owner, deployment: 1, process: "web", replica: 0, ...crash });
  const hour = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000);
  await db
    .insertInto("project_metric")
    .values({ ...owner, bucket_seconds: 3600, at: hour, requests: 100, errors: 5, latency_sum_ms: 2500 })
    .execute();
  await saveMachine(db, { name: "host", started_at: new Date(Date.now() - 60_000), description });
  const seen = await get<Result<"platform.overview">>("/v1/platform/overview");
  assert.deepEqual(seen.organizations, { total: 1, suspended: 0 });
  assert.deepEqual(seen.projects, { total: 1, deleted: 0, serving: 1 });
  assert.deepEqual(seen.deployments_today, { total: 2, succeeded: 1, failed: 1, in_progress: 0 });
  assert.deepEqual(seen.capacity, {
    memory_bytes: { requested: 15e8, available: 8e9 },
    cpus: { requested: 6, available: 4 },
  });
  const named = { organization: "main", project: "shop" };
  assert.deepEqual(seen.most_failing, [
    { ...named, errors: 5, crashes: 2, failed_deployments: 1, failed_cron_runs: 0 },
  ]);
  assert.deepEqual(seen.slowest, [{ ...named, requests: 100, mean_ms: 25 }]);
  assert.deepEqual(
    seen.machines.map(({ name, version, disk }) => [name, version, disk.used_bytes]),
    [["host", "1.2.3", { databases: 7 }]],
  );
  assert.ok((seen.machines[0]?.uptime_seconds ?? 0) >= 60);
});

test("what belongs to a suspended organization does not count as serving", async () => {
  const { db } = api.platform;
  const other = await testOrganization(db, "other");
  const project = await testProject(api.platform, other);
  const owner = { org_id: other.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const before = await get<Result<"platform.overview">>("/v1/platform/overview");
  await db.updateTable("organization").set({ suspended_at: new Date() }).where("id", "=", other.id).execute();
  const suspended = await get<Result<"platform.overview">>("/v1/platform/overview");
  assert.equal(suspended.projects.serving, before.projects.serving - 1);
  assert.equal(suspended.organizations.suspended, 1);
});

test("a swarm's machine is drained by restarts of the projects on it, and removed once it is empty", async () => {
  const { db } = api.platform;
  const swarm = await testOrganization(db, "swarm");
  const project = await testProject(api.platform, swarm);
  const owner = { org_id: swarm.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const worker: PooledMachine = {
    ...{ id: "m2", name: "two", address: "192.0.2.2", role: "worker", state: "ready", takes_replicas: true },
    ...{ guarded: true, replicas: 1, cpus: 2, memory_bytes: 4e9, version: "20.10" },
  };
  let machines: readonly PooledMachine[] = [{ ...worker, id: "m1", name: "one", role: "manager" }, worker];
  const change = (id: string, more: Partial<PooledMachine>) =>
    (machines = machines.map((each) => (each.id === id ? { ...each, ...more } : each)));
  const pool: MachinePool = {
    list: async () => machines,
    joinScript: async () => "join",
    admit: async (id, takes_replicas) => change(id, { takes_replicas }).length > 0,
    projectsOn: async () => [project.id],
    remove: async (id) => void (machines = machines.filter((each) => each.id !== id)),
  };
  Object.assign(api.platform.ports.runtime, { machines: pool });
  const call = async (method: "PUT" | "DELETE" | "POST", path: string, body?: object) => {
    const answer = await api.call(method, `/v1/platform/machines${path}`, { token: org.operator, body });
    return [answer.status, method === "DELETE" ? answer.body["code"] : answer.body];
  };
  const restartAsked = async () =>
    (
      await db
        .selectFrom("project")
        .select("variables_changed_at")
        .where("id", "=", project.id)
        .executeTakeFirstOrThrow()
    ).variables_changed_at !== null;
  assert.deepEqual(await call("POST", ""), [200, { script: "join" }]);
  assert.deepEqual(await call("DELETE", "/m2"), [409, "conflict"]);
  assert.equal(await restartAsked(), false);
  assert.deepEqual(await call("PUT", "/m2", { takes_replicas: false }), [200, { moving: 1 }]);
  assert.equal(await restartAsked(), true);
  assert.deepEqual(await call("DELETE", "/m2"), [409, "conflict"]);
  change("m2", { replicas: 0 });
  assert.deepEqual(await call("DELETE", "/m1"), [409, "conflict"]);
  const { body: said } = await api.call("DELETE", "/v1/platform/machines/m2?dry_run=true", { token: org.operator });
  assert.deepEqual(said["would_change"], {
    ...{ action: "org.machine_removed", target: "two" },
    detail: { state: "ready", replicas: 0, projects: [`swarm/${project.slug}`] },
  });
  await api.call("PUT", "/v1/platform/machines/m2?dry_run=true", {
    token: org.operator,
    body: { takes_replicas: true },
  });
  const careful = await testToken(db, org.id, { role: "owner", platform_admin: true, approval_mode: true });
  const waits = await api.call("DELETE", "/v1/platform/machines/m2", { token: careful.text });
  assert.deepEqual([waits.status, waits.body["code"]], [403, "approval_required"]);
  assert.deepEqual(
    machines.map(({ takes_replicas }) => takes_replicas),
    [true, false],
  );
  const secret = await api.call("POST", "/v1/platform/machines", { token: careful.text });
  assert.deepEqual([secret.status, secret.body["code"]], [403, "approval_required"]);
  const headers = { "idempotency-key": "join" };
  const join = () => api.call("POST", "/v1/platform/machines", { token: org.operator, headers });
  assert.deepEqual([(await join()).body, (await join()).body], [{ script: "join" }, { script: null }]);
  assert.deepEqual(await call("DELETE", "/m2"), [204, undefined]);
  assert.deepEqual(await call("DELETE", "/m2"), [404, "not_found"]);
  const { machines: left } = await get<Result<"platform.machines">>("/v1/platform/machines");
  assert.deepEqual(
    left.map(({ name }) => name),
    ["one"],
  );
});

test("what machines and edges did is shown in buckets, with gaps where nothing was measured", async () => {
  const { db } = api.platform;
  await saveMachine(db, { name: "host", started_at: new Date(), description });
  const minute = new Date(Math.floor(Date.now() / 60_000) * 60_000);
  const sample = { machine: "host", cpus: 1, memory_bytes: 100, disk_bytes: 10 };
  await addMachineSample(db, sample, minute);
  await addMachineSample(db, { ...sample, cpus: 2, memory_bytes: 200, disk_bytes: 5 }, minute);
  await addMachineSample(db, { ...sample, machine: "gone" }, minute);
  const seen = await get<Result<"platform.metrics">>("/v1/platform/metrics");
  const [host, ...others] = seen.machines;
  assert.deepEqual([host?.name, others.length, seen.bucket_seconds], ["host", 0, 60]);
  const at = seen.times.indexOf(minute.toISOString());
  const { cpus, memory_bytes, disk_bytes } = host?.used ?? assert.fail("no machine");
  assert.deepEqual([cpus[at], memory_bytes[at], disk_bytes[at]], [1.5, 150, 10]);
  assert.deepEqual([cpus[at - 1], cpus.length], [null, seen.times.length]);
  // An earlier test stored these requests.
  const hours = await get<Result<"platform.metrics">>("/v1/platform/metrics?range=7d");
  assert.deepEqual([Math.max(...hours.edges.requests), Math.max(...hours.edges.errors)], [100, 5]);
});

test("the overview shows the newest drill of each database, those that did not pass first", async () => {
  const { platform } = api;
  for (const [slug, status] of [
    ["passes", "passed"],
    ["differs", "mismatch"],
  ] as const) {
    const project = await testProject(platform, org, slug);
    const owner = { org_id: org.id, project_id: project.id };
    await platform.db.transaction().execute((tx) => requestDatabase(tx, platform.vault, owner));
    for (const [id, each] of [
      ["1", "failed"],
      ["2", status],
    ] as const)
      await platform.db
        .insertInto("archive_drill")
        .values({ ...owner, id: `drl_${slug}_${id}`, origin: "daily", status: each })
        .execute();
  }
  const { last_drills } = await get<Result<"platform.overview">>("/v1/platform/overview");
  assert.deepEqual(
    last_drills.map(({ project, status }) => [project, status]),
    [
      ["differs", "mismatch"],
      ["passes", "passed"],
    ],
  );
});

test("a move has ended with the first deployment of its build, whatever was deployed from it later", async () => {
  const { id: project_id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const moved = { origin: "redeploy", runtime: "docker" } as const;
  await api.database.db.updateTable("build").set(moved).where("id", "=", build_id).execute();
  await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  await testDeployment(api.platform, owner, { build_id, number: 2, status: "failed" });
  const { move } = await get<Result<"platform.runtime">>(`/v1/orgs/main/projects/${slug}/runtime`);
  assert.equal(move?.status, "done");
});
