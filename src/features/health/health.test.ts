import assert from "node:assert/strict";
import { test } from "node:test";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import type { Health } from "../../contract/health.ts";
import type { Result } from "../../contract/routes.ts";
import { recordCrash } from "../activity/activity.ts";
import { evaluateTraffic, observeHealth } from "./health.ts";

const api = await sharedApi();
const { db } = api.database;
const org = await testOrganization(db, "health");

/** A project with deployments that went live in this order, one minute apart; the last one serves with one ready replica. */
async function serving(...release: readonly (string | null)[]) {
  const { id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  for (const [index, command] of release.entries()) {
    const isLast = index === release.length - 1;
    const number = index + 1;
    const made = await testDeployment(api.platform, owner, { build_id, number, status: isLast ? "active" : "retired" });
    const activated_at = new Date(Date.now() - (release.length - index) * 60_000);
    const image = JSON.stringify({ release_command: command, web_command: "node .", processes: {} });
    await db.updateTable("deployment").set({ activated_at, image }).where("id", "=", made).execute();
    const replica = {
      org_id: org.id,
      deployment_id: made,
      ordinal: 0,
      attempt: 1,
      ready_attempt: 1,
      state: "running" as const,
    };
    if (isLast) await db.insertInto("replica").values(replica).execute();
  }
  const read = async <T>(path: string) =>
    (await api.call("GET", `/v1/projects/${slug}${path}`, { token: org.owner })).body as unknown as T;
  const crash = async (deployment: number) =>
    recordCrash(db, {
      ...{ ...owner, deployment, process: "web", replica: 0, out_of_memory: false, exit_code: 3 },
      ...{ restarts: 1, next_start_in_ms: 1000 },
    });
  return {
    owner,
    slug,
    crash,
    replica: (ready: boolean) =>
      db
        .updateTable("replica")
        .set({ ready_attempt: ready ? 1 : 0 })
        .where("project_id", "=", id)
        .execute(),
    health: async () => (await read<{ health: Health }>("")).health,
    timeline: async () => (await read<Result<"timeline.list">>("/timeline?kind=replica,cron")).timeline,
  };
}

test("overview, project and diagnosis show the same health, and a deleted project has none", async () => {
  const { slug, health } = await serving(null);
  const own = await health();
  assert.deepEqual([own.state, own.sentence], ["healthy", "Deployment #1 serves: 1 of 1 replica ready."]);
  const overview = (await api.call("GET", "/v1/overview", { token: org.owner }))
    .body as unknown as Result<"overview.get">;
  assert.deepEqual(overview.projects.find((each) => each.slug === slug)?.health, own);
  await api.call("DELETE", `/v1/projects/${slug}`, { token: org.owner });
  assert.equal(await health(), null);
});

test("a project deploys while its newest build or deployment is under way, and not after its end", async () => {
  const { owner, health } = await serving(null);
  const build = await testBuild(api.platform, owner, { status: "running" });
  const seen = async () => [(await health()).state, (await health()).code];
  assert.deepEqual(await seen(), ["deploying", "building"]);
  assert.equal((await health()).sentence, "Build 2 is in progress.");
  await db.updateTable("build").set({ status: "succeeded" }).where("id", "=", build).execute();
  const made = await testDeployment(api.platform, owner, { build_id: build, number: 2, status: "pending" });
  assert.deepEqual(await seen(), ["deploying", "releasing"]);
  await db.updateTable("deployment").set({ status: "failed" }).where("id", "=", made).execute();
  assert.equal((await health()).state, "healthy");
});

test("one crash leaves a project healthy; two are a loop, with the number of crashes and a way back", async () => {
  const { crash, health, replica } = await serving(null, null);
  await crash(2);
  assert.equal((await health()).state, "healthy");
  await replica(false);
  assert.deepEqual([(await health()).state, (await health()).code], ["down", "no_replica_ready"]);
  for (let count = 0; count < 45; count += 1) await crash(2);
  const found = await health();
  assert.deepEqual([found.state, found.code, found.seen["first_bad_deployment"]], ["crashing", "crash_loop", 2]);
  assert.match(found.sentence, /^Deployment #2 has crashed 46 times since .* UTC \(exit code 3\)\.$/);
  assert.match(found.next?.advice ?? "", /A rollback brings #1 back\./);
  assert.deepEqual(found.rollback, { to: 1, after_release: false });
});

test("the first deployment that crashed is named when a restart crashes too, and a rollback over a release command is not advised", async () => {
  const { crash, health } = await serving(null, "migrate", null);
  for (const deployment of [2, 2, 3, 3]) await crash(deployment);
  const found = await health();
  assert.equal(found.seen["first_bad_deployment"], 2);
  assert.deepEqual(found.rollback, { to: 2, after_release: false });
  assert.doesNotMatch(found.next?.advice ?? "", /rollback/);
  const released = await serving(null, "migrate");
  for (let count = 0; count < 2; count += 1) await released.crash(2);
  assert.match((await released.health()).next?.advice ?? "", /release command has run since #1/);
  assert.equal((await released.health()).rollback?.after_release, true);
});

test("crashes of a deployment are one entry of the timeline, and so are failures of a cron job in a row", async () => {
  const { crash, owner, timeline } = await serving(null, null);
  for (let count = 0; count < 16; count += 1) await crash(2);
  await crash(1);
  const crashes = await timeline();
  assert.deepEqual(
    crashes.map(({ summary, detail }) => [
      /^Crashed( 16 times since [-\d]+ [:\d]+ UTC)?: deployment \d/.test(summary),
      detail["crashes"],
    ]),
    [
      [true, 1],
      [true, 16],
    ],
  );
  const job = {
    id: `crn_${owner.project_id}`,
    ...owner,
    name: "mail",
    schedule: "* * * * *",
    path: "/mail",
    enabled: true,
  };
  await db
    .insertInto("cron_job")
    .values({ ...job, next_run_at: new Date() } as never)
    .execute();
  for (const [minute, status] of ["failed", "failed", "succeeded", "failed", "timeout", "failed"].entries()) {
    const at = new Date(Date.UTC(2026, 0, 2, 3, minute));
    const run = {
      id: `crr_${owner.project_id}_${minute}`,
      ...owner,
      job_id: job.id,
      trigger: "schedule",
      scheduled_at: at,
    };
    await db
      .insertInto("cron_run")
      .values({ ...run, status: "running" } as never)
      .execute();
    await db
      .updateTable("cron_run")
      .set({ status, finished_at: at, http_status: 500 } as never)
      .where("id", "=", run.id)
      .execute();
  }
  const failures = (await timeline()).filter(({ kind }) => kind === "cron").map(({ summary }) => summary);
  assert.deepEqual(failures, [
    "Cron job mail failed 3 times since 2026-01-02 03:03 UTC: status 500",
    "Cron job mail failed 2 times since 2026-01-02 03:00 UTC: status 500",
  ]);
});

test("failed requests degrade a project while they last, and a state that changed is stored with its beginning", async () => {
  const { owner, slug, health } = await serving(null, null);
  const metric = async (secondsAgo: number, requests: number, errors: number) => {
    const at = new Date(Date.now() - secondsAgo * 1000);
    await db
      .insertInto("project_metric")
      .values({ ...owner, bucket_seconds: 15, at, requests, errors })
      .execute();
  };
  await metric(400, 900, 0);
  await metric(50, 60, 60);
  await metric(30, 600, 0);
  await evaluateTraffic(db, new Date());
  const found = await health();
  assert.deepEqual([found.state, found.code, found.seen["first_bad_deployment"]], ["degraded", "server_errors", 2]);
  assert.match(found.sentence, /^60 of 660 requests since .* UTC got a status of 500 or above \(before: 0 of 900\)/);
  const observed = (await observeHealth(db, new Date())).find(({ subject }) => subject.endsWith(`/${slug}`));
  assert.equal(observed?.health.state, "degraded");
  const stored = db.selectFrom("project_health").select("state").where("project_id", "=", owner.project_id);
  assert.equal((await stored.executeTakeFirstOrThrow()).state, "degraded");
  await db.deleteFrom("project_metric").where("project_id", "=", owner.project_id).execute();
  await evaluateTraffic(db, new Date());
  assert.equal((await health()).state, "healthy");
});
