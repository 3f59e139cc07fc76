import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { deployedProject } from "../../../test/support/cron-platform.ts";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";
import { runtimeDouble } from "../../../test/support/port-doubles.ts";
import { changedWorkloads, saveEdge } from "../../features/deployments/deployments.ts";
import { endReplicas } from "./end-replicas.ts";

let database: TestDatabase;

before(async () => {
  database = await testDatabase();
});
after(() => database.drop());

test("a replica is stopped only after every live edge has confirmed that it is out of the routes", async () => {
  const { db, vault } = database;
  const project = await deployedProject({ db, vault }, { host: "127.0.0.1", port: 1 });
  const stopped: string[] = [];
  const stop = async (id: string) => void stopped.push(id);
  const platform = platformDouble({ db, vault, ports: { runtime: runtimeDouble({ stop, remove: async () => {} }) } });
  const confirm = async (route_version: number) => {
    await saveEdge(db, {
      id: "edge",
      machine: "here",
      kind: "builtin",
      route_version,
      certificate_version: 0,
      open_requests: {},
    });
    // Keeps the edge live for the length of this test.
    await sql`update edge set seen_at = now() + interval '1 hour'`.execute(db);
  };
  await confirm(0);
  const id = project.deployment_id;
  const { workloads } = await changedWorkloads(db, platform.machine, { ids: [id] });
  const row = workloads.find((each) => each.id === id);
  await sql`update project set deleted_at = now() where id = ${project.project_id}`.execute(db);
  const ending = endReplicas(platform, { id, row, ordinals: [0] });
  const draining = db
    .selectFrom("replica")
    .select("ordinal")
    .where("deployment_id", "=", id)
    .where("state", "=", "draining");
  await eventually(async () => (await draining.execute()).length === 1, "the replica is out of the routes");
  assert.deepEqual(stopped, []);
  await confirm(1e9);
  await ending;
  // The wait ends after some seconds, and the next run decides again.
  await eventually(async () => {
    await endReplicas(platform, { id, row, ordinals: [0] });
    return stopped.length > 0;
  }, "the replica is stopped");
});
