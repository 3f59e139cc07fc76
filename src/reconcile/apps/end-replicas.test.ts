import assert from "node:assert/strict";
import { after, test } from "node:test";
import { sql } from "kysely";
import { deployedProject } from "../../../test/support/cron-platform.ts";
import { testDatabase } from "../../../test/support/database.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { readyReplica } from "../../../test/support/fixtures.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";
import { logStoreDouble, runtimeDouble } from "../../../test/support/port-doubles.ts";
import { changedWorkloads } from "../../features/replicas/replicas.ts";
import { saveEdge } from "../../features/routes/routes.ts";
import { endReplicas, stopReplicas } from "./end-replicas.ts";

const { db, vault, drop } = await testDatabase();
after(drop);

/** Saves what the only edge serves, and how many requests are open to the replica. */
async function saveServing({ version, openRequests = 0 }: { version: number; openRequests?: number }): Promise<void> {
  const open_requests = { "127.0.0.1:1": openRequests };
  const serves = { route_version: version, certificate_version: 0, open_requests };
  await saveEdge(db, { id: "edge", machine: "here", kind: "haproxy", ...serves });
  // Keeps the edge live for the length of this test.
  await sql`update edge set seen_at = now() + interval '1 hour'`.execute(db);
}

/** A project that was deleted just now, and whose replica still runs. */
async function deletedProject() {
  const project = await deployedProject({ db, vault }, { host: "127.0.0.1", port: 1 });
  const seen = { stopped: [] as string[], looksAtRequests: 0 };
  const counted = db.withPlugin({
    transformQuery: ({ node }) => {
      if (JSON.stringify(node).includes("open_requests")) seen.looksAtRequests += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const stop = async (id: string) => void seen.stopped.push(id);
  const runtime = runtimeDouble({ stop, remove: async () => {} });
  const platform = platformDouble({ db: counted, vault, ports: { runtime }, settings: { drainMs: 3_600_000 } });
  const id = project.deployment_id;
  const { workloads } = await changedWorkloads(db, platform.machine, { ids: [id] });
  const row = workloads.find((each) => each.id === id);
  const setDeleted = (deleted_at: Date | null) =>
    db.updateTable("project").set({ deleted_at }).where("id", "=", project.project_id).execute();
  await setDeleted(new Date());
  return { id, seen, setDeleted, end: () => endReplicas(platform, { id, row, ordinals: [0] }) };
}

test("a replica is stopped only after every live edge has confirmed that it is out of the routes", async () => {
  await saveServing({ version: 0 });
  const { id, seen, end } = await deletedProject();
  const ending = end();
  const draining = db
    .selectFrom("replica")
    .select("ordinal")
    .where("deployment_id", "=", id)
    .where("state", "=", "draining");
  await eventually(async () => (await draining.execute()).length === 1, "the replica is out of the routes");
  assert.deepEqual(seen.stopped, []);
  await saveServing({ version: 1e9 });
  await ending;
  // The wait ends after some seconds, and the next run decides again.
  await eventually(async () => {
    await end();
    return seen.stopped.length > 0;
  }, "the replica is stopped");
});

test("a replica with open requests is stopped once they have ended", async () => {
  await saveServing({ version: 1e9, openRequests: 1 });
  const { id, seen, end } = await deletedProject();
  const ending = end();
  await eventually(() => seen.looksAtRequests > 2 || seen.stopped.length > 0, "it waits for the requests");
  assert.deepEqual(seen.stopped, []);
  await saveServing({ version: 1e9 });
  await ending;
  assert.deepEqual(seen.stopped, [id]);
});

test("a replica that is wanted again while its requests end is not stopped", async () => {
  await saveServing({ version: 1e9, openRequests: 1 });
  const { seen, setDeleted, end } = await deletedProject();
  const ending = end();
  await eventually(() => seen.looksAtRequests > 0 || seen.stopped.length > 0, "it waits for the requests");
  await setDeleted(null);
  await saveServing({ version: 1e9 });
  await ending;
  assert.deepEqual(seen.stopped, []);
});

test("how far the output of a workload was read is forgotten with its last replica", async () => {
  const { org_id, deployment_id: id } = await deployedProject({ db, vault }, { host: "127.0.0.1", port: 1 });
  await readyReplica(db, { org_id, deployment_id: id, ordinal: 1, address: { host: "127.0.0.1", port: 2 } });
  const forgotten: string[] = [];
  const runtime = runtimeDouble({ stop: async () => {}, remove: async () => {} });
  const logStore = logStoreDouble({ forgetPositions: async (workload) => void forgotten.push(workload) });
  const platform = platformDouble({ db, vault, ports: { runtime, logStore } });
  for (const [ordinal, expected] of [
    [1, []],
    [0, [id]],
  ] as const) {
    const { workloads } = await changedWorkloads(db, platform.machine, { ids: [id] });
    await stopReplicas(platform, { id, row: workloads[0], ordinals: [ordinal] });
    assert.deepEqual(forgotten, expected);
  }
});
