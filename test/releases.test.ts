import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { until } from "../src/kit/until.ts";
import { startReleasePlatform, type ReleasePlatform, type ReleaseProject } from "./support/releases.ts";
import { testDeployment } from "./support/fixtures.ts";
import { testToken } from "./support/test-platform.ts";
import { guardMs } from "./support/eventually.ts";

let running: ReleasePlatform;
let operator: string;

before(async () => {
  running = await startReleasePlatform();
  operator = (await running.servingProject()).org.operator;
});
beforeEach(() => void (running.apps.start = "healthy"));
after(() => running.close());

const call = (project: ReleaseProject, method: string, path: string, body?: unknown) =>
  running.api.call(method, `${project.path}${path}`, { token: project.org.owner, body });
const suspend = (project: ReleaseProject) =>
  running.api.call("POST", `/v1/orgs/${project.org.slug}/disable`, { token: operator });
const enable = (project: ReleaseProject) =>
  running.api.call("POST", `/v1/orgs/${project.org.slug}/enable`, { token: operator });
const activeOf = async (project: ReleaseProject) =>
  (await project.deployments()).find((each) => each.status === "active")?.number;

const ends = [
  { what: "deleted", code: "project_deleted", end: (project: ReleaseProject) => call(project, "DELETE", "") },
  { what: "suspended", code: "org_suspended", end: suspend },
] as const;

for (const { what, code, end } of ends) {
  test(`a push whose project is ${what} while its application starts is refused and never goes live`, async () => {
    const project = await running.servingProject();
    running.apps.start = "unhealthy";
    const pushing = project.push();
    const starting = await project.reaches(2, "starting");
    await until(() => running.apps.running().includes(starting.id) || undefined, { timeoutMs: guardMs });
    assert.equal((await end(project)).status, 200);
    running.apps.heal();
    const { accepted, lines } = await pushing;
    assert.equal(accepted, false);
    assert.ok(!lines.some((line) => line.includes("Live at")), lines.join("\n"));
    const { failure } = await project.reaches(2, "failed");
    assert.deepEqual([failure?.stage, failure?.code], ["switch", code]);
    assert.equal(await activeOf(project), 1);
    assert.equal(
      await until(() => !running.apps.running().includes(starting.id) || undefined, { timeoutMs: guardMs }),
      true,
    );
  });

  test(`a deployment that waits for its release starts no process once its project is ${what}`, async () => {
    const project = await running.servingProject();
    await project.push();
    await running.pause();
    const rolling = call(project, "POST", "/rollback");
    const waiting = await project.reaches(3, "pending");
    await end(project);
    await running.resume();
    const { failure } = await project.reaches(3, "failed");
    assert.equal(failure?.code, code);
    assert.equal(running.apps.started.has(waiting.id), false);
    const { status, body } = await rolling;
    assert.deepEqual([status, body["code"]], [code === "project_deleted" ? 409 : 403, code]);
  });
}

test("a push whose pusher loses the right to push while the application starts never goes live", async () => {
  const project = await running.servingProject();
  running.apps.start = "unhealthy";
  const right = new AbortController();
  const pushing = project.push(right.signal);
  const starting = await project.reaches(2, "starting");
  await until(() => running.apps.running().includes(starting.id) || undefined, { timeoutMs: guardMs });
  right.abort();
  assert.equal((await pushing).accepted, false);
  running.apps.heal();
  const isGone = () => !running.apps.running().includes(starting.id) || undefined;
  assert.equal(await until(isGone, { timeoutMs: guardMs }), true);
  assert.equal((await project.reaches(2, "failed")).failure?.code, "push_ended");
  assert.equal(await activeOf(project), 1);
});

const tokenEnds = {
  revoked: (id: string) =>
    running.platform.db.updateTable("api_token").set({ revoked_at: new Date() }).where("id", "=", id).execute(),
  expired: (id: string) =>
    running.platform.db.updateTable("api_token").set({ expires_at: new Date() }).where("id", "=", id).execute(),
};

for (const [what, end] of Object.entries(tokenEnds)) {
  test(`a deploy over the API or by push whose token is ${what} while its application starts never goes live`, async () => {
    const project = await running.servingProject();
    for (const way of ["api", "push"] as const) {
      running.apps.start = "unhealthy";
      const token = await testToken(running.platform.db, project.org.id, {});
      const pushing = way === "push" ? project.push(undefined, token.id) : undefined;
      if (way === "api") {
        const asked = await running.api.call("POST", `${project.path}/deployments`, { token: token.text, body: {} });
        assert.equal(asked.status, 201, asked.text);
      }
      const starting = await project.reaches(way === "api" ? 2 : 3, "starting");
      await until(() => running.apps.running().includes(starting.id) || undefined, { timeoutMs: guardMs });
      await end(token.id);
      running.apps.heal();
      const { failure } = await project.reaches(starting.number, "failed");
      assert.deepEqual([failure?.stage, failure?.code], ["switch", "token_ended"]);
      assert.match(failure?.summary ?? "", /token .* was revoked or has expired/);
      if (pushing !== undefined) assert.equal((await pushing).accepted, false);
      assert.equal(await activeOf(project), 1);
    }
  });
}

test("a deploy whose token is revoked before its build ends has no deployment, and one whose token is revoked before its release command runs none", async () => {
  const project = await running.servingProject();
  const { db } = running.platform;
  const token = await testToken(db, project.org.id, {});
  const deploy = () => running.api.call("POST", `${project.path}/deployments`, { token: token.text, body: {} });
  await running.pause();
  const { body } = await deploy();
  await tokenEnds.revoked(token.id);
  await running.resume();
  const built = () =>
    db
      .selectFrom("build")
      .select(["status", "failure"])
      .where("id", "=", body["build_id"] as string)
      .executeTakeFirstOrThrow();
  await until(async () => (await built()).status === "failed" || undefined, { timeoutMs: guardMs });
  assert.equal(((await built()).failure as { code?: string } | null)?.code, "token_ended");
  assert.equal((await project.deployments()).length, 1);
  // A deployment that waits, as after a restart of the control plane.
  await running.pause();
  await testDeployment(running.api.platform, project.owner, {
    ...{ build_id: body["build_id"] as string, number: 2, status: "pending" },
  });
  await db
    .updateTable("deployment")
    .set({ trigger: "redeploy" })
    .where("number", "=", 2)
    .where("project_id", "=", project.owner.project_id)
    .execute();
  await running.resume();
  const { id, failure } = await project.reaches(2, "failed");
  assert.equal(failure?.code, "token_ended");
  assert.equal(running.apps.started.has(id), false);
});

test("a rollback to what a token deployed that was revoked since goes live", async () => {
  const project = await running.servingProject();
  const token = await testToken(running.platform.db, project.org.id, {});
  assert.equal((await project.push(undefined, token.id)).accepted, true);
  assert.equal((await project.push()).accepted, true);
  await tokenEnds.revoked(token.id);
  assert.equal((await call(project, "POST", "/rollback")).status, 200);
});

test("changed variables start nothing while the organization is suspended, and apply once it is enabled", async () => {
  const project = await running.servingProject();
  assert.equal((await call(project, "PUT", "/env/COLOUR", { value: "green" })).status, 204);
  await suspend(project);
  const other = await running.servingProject();
  assert.equal((await call(other, "PUT", "/env/COLOUR", { value: "red" })).status, 204);
  // The other project's restart proves that the task has passed this project.
  await other.reaches(2, "active");
  assert.equal((await project.deployments()).length, 1);
  await enable(project);
  const { id } = await project.reaches(2, "active");
  assert.equal(project.environment(id)["COLOUR"], "green");
});

test("a redeploy that is queued while its organization is suspended is built when it is enabled", async () => {
  const project = await running.servingProject();
  await running.pause();
  assert.equal((await call(project, "POST", "/deployments", {})).status, 201);
  await suspend(project);
  await running.resume();
  const other = await running.servingProject();
  assert.equal((await other.push()).accepted, true);
  assert.equal((await project.deployments()).length, 1);
  await enable(project);
  assert.equal((await project.reaches(2, "active")).trigger, "redeploy");
});

const rollbacks = [
  { start: "crash", status: 502, code: "previous_unhealthy" },
  { start: "fault", status: 503, code: "unavailable" },
] as const;

for (const { start, status, code } of rollbacks) {
  test(`a rollback that ends in a ${start} fails with ${code}, and the active deployment keeps serving`, async () => {
    const project = await running.servingProject();
    assert.equal((await project.push()).accepted, true);
    running.apps.start = start;
    const answer = await call(project, "POST", "/rollback");
    assert.deepEqual([answer.status, answer.body["code"]], [status, code]);
    // What the application said may be in the sentence.
    assert.equal(answer.body["foreign"], start === "crash" ? true : undefined);
    assert.equal(await activeOf(project), 2);
  });
}

test("a rollback interrupted by a stop of the platform is not reported as a failure of the earlier deployment", async () => {
  const project = await running.servingProject();
  assert.equal((await project.push()).accepted, true);
  running.apps.start = "unhealthy";
  const rolling = call(project, "POST", "/rollback");
  await project.reaches(3, "starting");
  await running.pause();
  const answer = await rolling;
  await running.resume();
  assert.deepEqual([answer.status, answer.body["code"]], [503, "unavailable"]);
});
