import assert from "node:assert/strict";
import { test } from "node:test";
import { readyReplica, testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { changeProject } from "../projects/projects.ts";
import { markReady, markRunning } from "../replicas/replicas.ts";
import { changedRoutes } from "./routes.ts";

const api = await sharedApi();
const { db } = api.database;
let count = 0;

/** A project of its own organization with three replicas, whose active deployment serves at the ports 1, 2 and 3. */
async function servingProject() {
  const org = await testOrganization(db, `org-${(count += 1)}`);
  const owner = { org_id: org.id, project_id: (await testProject(api.platform, org)).id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const deploy = async (number: number, status: "active" | "starting", ports: readonly number[]) => {
    const deployment_id = await testDeployment(api.platform, owner, { build_id, number, status });
    for (const [ordinal, port] of ports.entries())
      await readyReplica(db, { org_id: org.id, deployment_id, ordinal, address: { host: "127.0.0.1", port } });
    return deployment_id;
  };
  const change = (values: Parameters<typeof changeProject>[2]) =>
    db.transaction().execute((tx) => changeProject(tx, owner, values));
  const route = async () => {
    const { projects } = await changedRoutes(db, null);
    const { state, targets } = projects.find(({ project_id }) => project_id === owner.project_id)?.routes[0] ?? {};
    return [state, ...(targets ?? []).map((target) => ("port" in target ? target.port : target))];
  };
  await change({ replicas: 3 });
  return { org, deploy, change, route, active: await deploy(1, "active", [1, 2, 3]) };
}

test("requests go to those replicas alone whose latest start passed its health check", async () => {
  const { org, active, route } = await servingProject();
  const restarted = { org_id: org.id, deployment_id: active, process: "web", ordinal: 1, attempt: 2 };
  await markRunning(db, { ...restarted, machine: "test", host: "127.0.0.1", port: 4 });
  assert.deepEqual(await route(), ["serving", 1, 3]);
  await markReady(db, restarted);
  assert.deepEqual(await route(), ["serving", 1, 4, 3]);
  // A probe of the start before that ends late.
  await markReady(db, { ...restarted, attempt: 1 });
  assert.deepEqual(await route(), ["serving", 1, 4, 3]);
});

test("requests go to no replica that a scale-down will stop", async () => {
  const { change, route } = await servingProject();
  await change({ replicas: 2 });
  assert.deepEqual(await route(), ["serving", 1, 2]);
});

test("requests go to a new deployment once its switch has begun, and not before", async () => {
  const { deploy, route } = await servingProject();
  const id = await deploy(2, "starting", [7]);
  assert.deepEqual(await route(), ["serving", 1, 2, 3]);
  await db.updateTable("deployment").set({ switching: true }).where("id", "=", id).execute();
  assert.deepEqual(await route(), ["serving", 7]);
});

test("a project that falls asleep serves until its replicas are stopped, and again as soon as one is ready", async () => {
  const { active, change, route } = await servingProject();
  const ready = (ready_attempt: number) =>
    db.updateTable("replica").set({ ready_attempt }).where("deployment_id", "=", active).execute();
  await change({ sleep: "asleep", replicas: 1 });
  assert.deepEqual(await route(), ["serving", 1]);
  await ready(0);
  assert.deepEqual(await route(), ["asleep"]);
  await change({ sleep: "waking" });
  assert.deepEqual(await route(), ["asleep"]);
  await ready(1);
  assert.deepEqual(await route(), ["serving", 1]);
});

test("a project in maintenance, deleted or of a suspended organization has no target, and the last reason is shown", async () => {
  const { org, change, route } = await servingProject();
  await change({ maintenance_since: new Date() });
  assert.deepEqual(await route(), ["maintenance"]);
  await change({ deleted_at: new Date() });
  assert.deepEqual(await route(), ["deleted"]);
  await db.updateTable("organization").set({ suspended_at: new Date() }).where("id", "=", org.id).execute();
  assert.deepEqual(await route(), ["suspended"]);
});
