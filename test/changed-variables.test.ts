// Drawn with other operation files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { until } from "../src/kit/until.ts";
import { databasesTask } from "../src/reconcile/databases/databases-task.ts";
import { startReleasePlatform, type ReleasePlatform, type ReleaseProject } from "./support/releases.ts";
import { guardMs } from "./support/eventually.ts";

let running: ReleasePlatform;

before(async () => void (running = await startReleasePlatform()));
beforeEach(() => void Object.assign(running.apps, { start: "healthy", builds: "sound" }));
after(() => running.close());

const call = (project: ReleaseProject, method: string, path: string, body?: unknown) =>
  running.api.call(method, `${project.path}${path}`, { token: project.org.owner, body });
const set = (project: ReleaseProject, key: string, value: string) => call(project, "PUT", `/env/${key}`, { value });
const runs = (id: string) => until(() => running.apps.running().includes(id) || undefined, { timeoutMs: guardMs });
const isMarked = async ({ owner }: ReleaseProject) => {
  const query = running.platform.db.selectFrom("project").select("variables_changed_at");
  return (await query.where("id", "=", owner.project_id).executeTakeFirstOrThrow()).variables_changed_at !== null;
};

test("a variable change that fails through a platform fault is retried", async () => {
  const project = await running.servingProject();
  running.apps.start = "fault";
  await set(project, "COLOUR", "green");
  assert.equal((await project.reaches(2, "failed")).failure?.code, "platform_fault");
  running.apps.start = "healthy";
  const { id, trigger } = await project.reaches(3, "active");
  assert.deepEqual([trigger, project.environment(id)["COLOUR"]], ["variables", "green"]);
  assert.equal(await isMarked(project), false);
});

test("a variable change interrupted by a stop of the platform is applied after the next start", async () => {
  const project = await running.servingProject();
  running.apps.start = "unhealthy";
  await set(project, "COLOUR", "green");
  await runs((await project.reaches(2, "starting")).id);
  await running.pause();
  assert.equal((await project.reaches(2, "failed")).failure?.code, "interrupted");
  running.apps.start = "healthy";
  await running.resume();
  assert.equal(project.environment((await project.reaches(3, "active")).id)["COLOUR"], "green");
});

test("a variable change is applied although the push that contained it fails", async () => {
  const project = await running.servingProject();
  await set(project, "COLOUR", "green");
  running.apps.builds = "broken";
  assert.equal((await project.push()).accepted, false);
  const { id, trigger } =
    (await until(
      async () => (await project.deployments()).find((each) => each.number > 1 && each.status === "active"),
      { timeoutMs: guardMs },
    )) ?? assert.fail("the change was lost");
  assert.deepEqual([trigger, project.environment(id)["COLOUR"]], ["variables", "green"]);
});

test("variables with which the application crashes are tried once", async () => {
  const project = await running.servingProject();
  running.apps.start = "crash";
  await set(project, "COLOUR", "green");
  assert.equal((await project.reaches(2, "failed")).failure?.code, "crash_on_boot");
  assert.equal(await isMarked(project), false);
});

test("a variable change during the restart for an earlier change is applied too", async () => {
  const project = await running.servingProject();
  running.apps.start = "unhealthy";
  await set(project, "COLOUR", "green");
  await runs((await project.reaches(2, "starting")).id);
  await set(project, "COLOUR", "blue");
  running.apps.start = "healthy";
  running.apps.heal();
  assert.equal(project.environment((await project.reaches(3, "active")).id)["COLOUR"], "blue");
});

test("a database that becomes ready during the first deploy is in the application's environment", async () => {
  const project = await running.newProject();
  running.apps.start = "unhealthy";
  const pushing = project.push();
  const first = await project.reaches(1, "starting");
  await runs(first.id);
  await project.requestDatabase();
  await databasesTask(running.platform).run(new AbortController().signal);
  running.apps.start = "healthy";
  running.apps.heal();
  assert.equal((await pushing).accepted, true);
  assert.equal(project.environment(first.id)["DATABASE_URL"], undefined);
  const { id } = await project.reaches(2, "active");
  assert.match(project.environment(id)["DATABASE_URL"] ?? "", /^postgresql:/);
});

test("a promotion answers once the application uses the database, and until then the one before stays in use", async () => {
  const project = await running.servingProject();
  await project.requestDatabase();
  await databasesTask(running.platform).run(new AbortController().signal);
  const serving = await project.reaches(2, "active");
  const first = project.environment(serving.id)["PGDATABASE"] ?? "";
  await running.platform.db
    .insertInto("restored_database")
    .values({ ...project.owner, name: "restored" })
    .execute();
  running.apps.start = "fault";
  const changes = running.writable;
  const failed = await call(project, "POST", "/database/promote", { database: "restored" });
  assert.deepEqual([failed.status, failed.body["code"]], [503, "unavailable"], failed.text);
  await project.reaches(3, "failed");
  assert.equal(changes.get(first) ?? true, true, "the database in use accepts no writes after a failed switch");
  running.apps.crash(serving.id);
  const again = () => running.apps.started.get(serving.id)?.env["PGDATABASE"];
  assert.equal(await until(again, { timeoutMs: guardMs }), first);
  const refused = await call(project, "DELETE", `/database/restored/${first}`);
  assert.deepEqual([refused.status, refused.body["code"]], [409, "conflict"]);

  running.apps.start = "healthy";
  const { id } = await project.reaches(4, "active");
  assert.equal(project.environment(id)["PGDATABASE"], "restored");
  assert.deepEqual([changes.get(first), changes.get("restored")], [false, true]);

  const back = await call(project, "POST", "/database/promote", { database: first });
  assert.deepEqual([back.status, back.body], [200, { database: first, previous: "restored" }], back.text);
  const active = (await project.deployments()).find(({ status }) => status === "active");
  assert.equal(project.environment(active?.id ?? "")["PGDATABASE"], first);
  assert.deepEqual([changes.get("restored"), changes.get(first)], [false, true]);
  assert.equal((await call(project, "DELETE", "/database/restored/restored")).status, 204);
});
