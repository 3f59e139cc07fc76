import assert from "node:assert/strict";
import { test } from "node:test";
import { readyReplica, testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { newId } from "../../kit/ids.ts";
import { changeProject } from "../projects/projects.ts";
import { endSleep, fallAsleep } from "./sleep.ts";

const api = await sharedApi();
const { db } = api.database;
const org = await testOrganization(db, "night", { maxProjects: 100 });
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();

/** A project that asks for sleep after 30 minutes, and was deployed an hour ago. */
async function idle() {
  const { id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const deployment_id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const image = JSON.stringify({ web_command: "node .", processes: { worker: "node worker.js" } });
  await db
    .updateTable("deployment")
    .set({ activated_at: minutesAgo(60), image })
    .where("id", "=", deployment_id)
    .execute();
  const call = (method: string, path: string, body?: unknown) =>
    api.call(method, `/v1/projects/${slug}${path}`, { token: org.owner, body });
  const workers = (replicas: number) =>
    db
      .insertInto("process_setting")
      .values({ ...owner, process: "worker", replicas })
      .onConflict((on) => on.columns(["project_id", "process"]).doUpdateSet({ replicas }))
      .execute();
  await workers(0);
  assert.equal((await call("PUT", "/settings", { sleep_after_minutes: 30 })).body["sleep_after_minutes"], 30);
  const change = (values: Parameters<typeof changeProject>[2]) =>
    db.transaction().execute((tx) => changeProject(tx, owner, values));
  const requested = (minutes: number) =>
    db
      .insertInto("project_metric")
      .values(
        [15, 60, 900, 3600].map((seconds) => ({
          ...owner,
          bucket_seconds: seconds,
          at: minutesAgo(minutes),
          requests: 1,
        })),
      )
      .execute();
  const health = async () => (await call("GET", "")).body["health"] as { state: string; code: string };
  return { owner, build_id, deployment_id, workers, call, change, requested, health };
}

type Idle = Awaited<ReturnType<typeof idle>>;

test("a project without requests falls asleep, and says so", async () => {
  const { owner, requested, health } = await idle();
  await requested(33);
  assert.deepEqual(await fallAsleep(db, []), [owner.project_id]);
  const { state, code } = await health();
  assert.deepEqual([state, code], ["asleep", "asleep"]);
  assert.deepEqual(await fallAsleep(db, []), [], "once");
});

const awake: readonly [string, (project: Idle) => Promise<unknown>, string?][] = [
  ["a request", ({ requested }) => requested(30)],
  ["a background process", ({ workers }) => workers(1)],
  ["a cron job", ({ call }) => call("PUT", "/cron/tick", { schedule: "0 3 * * *", path: "/tick" })],
  [
    "a deployment in progress",
    ({ owner, build_id }) => testDeployment(api.platform, owner, { build_id, number: 2, status: "starting" }),
  ],
  ["a build in progress", ({ owner }) => testBuild(api.platform, owner, { status: "running" })],
  [
    "a command in progress",
    async ({ owner, deployment_id }) => {
      const run = { ...owner, id: newId("run"), number: 1, deployment_id, deployment: 1, command: "node seed.js" };
      await db
        .insertInto("run")
        .values({ ...run, timeout_seconds: 60, requested_by: "owner" })
        .execute();
    },
  ],
  [
    "an open tunnel to its database",
    async ({ owner }) => {
      const tunnel = { ...owner, id: newId("tun"), token_id: "tok_1", purpose: "session" } as const;
      await db.insertInto("database_tunnel").values(tunnel).execute();
    },
  ],
  ["maintenance", ({ change }) => change({ maintenance_since: new Date() })],
  ["its last start", ({ change }) => change({ sleep_at: minutesAgo(29) })],
  [
    "an open connection",
    ({ deployment_id }) =>
      readyReplica(db, { org_id: org.id, deployment_id, ordinal: 0, address: { host: "10.9.8.7", port: 3000 } }),
    "10.9.8.7:3000",
  ],
];

for (const [what, begin, busy] of awake)
  test(`${what} keeps a project awake`, async () => {
    const project = await idle();
    await begin(project);
    assert.deepEqual(await fallAsleep(db, busy === undefined ? [] : [busy]), []);
    await project.change({ sleep_after_minutes: null });
  });

test("a project that was woken, or that no longer asks for sleep, is as all others after a while", async () => {
  const { owner, call, change, health } = await idle();
  await change({ sleep: "waking", sleep_at: minutesAgo(0) });
  assert.deepEqual(await endSleep(db), []);
  assert.equal((await health()).code, "waking");
  await change({ sleep_at: minutesAgo(2) });
  assert.deepEqual(await endSleep(db), [owner.project_id]);
  assert.equal((await health()).state, "down", "it did not start");
  await change({ sleep: "asleep" });
  await call("PUT", "/settings", { sleep_after_minutes: null });
  assert.deepEqual(await endSleep(db), [owner.project_id]);
});
