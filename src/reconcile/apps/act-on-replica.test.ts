import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { deployedProject } from "../../../test/support/cron-platform.ts";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";
import { instanceDouble, runtimeDouble } from "../../../test/support/port-doubles.ts";
import { changedWorkloads } from "../../features/replicas/replicas.ts";
import { saveEdge } from "../../features/routes/routes.ts";
import type { Instance } from "../../ports/runtime.ts";
import { actOnReplica } from "./act-on-replica.ts";

let database: TestDatabase;

before(async () => {
  database = await testDatabase();
});
after(() => database.drop());

test("a replica that was stopped with its service is no crash: it is neither counted nor told", async () => {
  const { db, vault } = database;
  const { deployment_id: id } = await deployedProject({ db, vault }, { host: "127.0.0.1", port: 1 });
  const platform = platformDouble({ db, vault, ingestOutput: async () => {} });
  const crash = async (stopped: { readonly stopped?: true }) => {
    await db.updateTable("replica").set({ state: "running" }).where("deployment_id", "=", id).execute();
    const exit = { code: 143, out_of_memory: false, at: new Date(), ...stopped };
    const instance = instanceDouble({ workload_id: id, attempt: 1, state: "exited", address: null, exit });
    const { workloads } = await changedWorkloads(db, platform.machine, { ids: [id] });
    const workload = workloads.find((each) => each.id === id);
    assert.ok(workload);
    const replica = { platform, workload, ordinal: 0, row: workload.replica_rows[0], instance };
    await actOnReplica(replica, { action: "crashed", instance }, new AbortController().signal);
    const row = await db
      .selectFrom("replica")
      .select(["crashes", "restarts"])
      .where("deployment_id", "=", id)
      .execute();
    const told = await db.selectFrom("activity").select("id").where("action", "=", "replica.crashed").execute();
    return [row[0]?.crashes, row[0]?.restarts, told.length];
  };
  assert.deepEqual(await crash({ stopped: true }), [0, 0, 0]);
  assert.deepEqual(await crash({}), [1, 1, 1]);
});

test("a replica of a lost machine starts elsewhere before an edge that is behind confirms, after only its own output is stored", async () => {
  const { db, vault } = database;
  const { deployment_id: id } = await deployedProject({ db, vault }, { host: "127.0.0.1", port: 1 });
  const exit = { code: null, out_of_memory: false, machine_lost: true, at: new Date() } as const;
  const lost = instanceDouble({ workload_id: id, attempt: 1, state: "exited", address: null, exit });
  const started: number[] = [];
  const ingested: (readonly number[])[] = [];
  const runtime = runtimeDouble({
    observe: async () => [lost, instanceDouble({ workload_id: id, ordinal: 1 })],
    start: async (_, { ordinal, attempt }) => {
      started.push(attempt);
      return instanceDouble({ workload_id: id, ordinal, attempt, address: null });
    },
  });
  const ingestOutput = async ({ instances }: { instances: readonly Instance[] }) =>
    void ingested.push(instances.map(({ ordinal }) => ordinal));
  const platform = platformDouble({ db, vault, ingestOutput, ports: { runtime } });
  const edge = { id: "edge", machine: "lost", kind: "haproxy", certificate_version: 0, open_requests: {} } as const;
  await saveEdge(db, { ...edge, route_version: 0 });
  // Keeps the edge live for the length of this test.
  await sql`update edge set seen_at = now() + interval '1 hour'`.execute(db);
  const replica = async (instance: Instance) => {
    const { workloads } = await changedWorkloads(db, platform.machine, { ids: [id] });
    const workload = workloads.find((each) => each.id === id);
    assert.ok(workload);
    return { platform, workload, ordinal: 0, row: workload.replica_rows[0], instance };
  };
  const { signal } = new AbortController();
  await actOnReplica(await replica(lost), { action: "crashed", instance: lost }, signal);
  assert.deepEqual(ingested, [[0]]);
  await actOnReplica(await replica(lost), { action: "start", inMs: 0 }, signal);
  assert.deepEqual(started, [2]);
});
