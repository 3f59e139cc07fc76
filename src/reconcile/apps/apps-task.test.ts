import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deployedProject } from "../../../test/support/cron-platform.ts";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";
import { instanceDouble, runtimeDouble } from "../../../test/support/port-doubles.ts";
import { createDiskLogStore } from "../../adapters/log-store-disk/disk-log-store.ts";
import { systemClock } from "../../ports/clock.ts";
import { openVault } from "../../store/vault.ts";
import { createIngest } from "../logs/ingest.ts";
import { appsTask } from "./apps-task.ts";

let database: TestDatabase;
let folder: string;

before(async () => {
  database = await testDatabase();
  folder = await mkdtemp(join(tmpdir(), "berth-apps-task-"));
});
after(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

test("what ends is forgotten with the positions of its output, and with its numbers unless it may come back", async () => {
  const { db } = database;
  const vault = openVault({ keyFile: join(folder, "key") });
  const logStore = createDiskLogStore({ dir: folder });
  const [failed, deleted] = [await deployedProject({ db, vault }), await deployedProject({ db, vault })];
  await db.updateTable("deployment").set({ status: "failed" }).where("id", "=", failed.deployment_id).execute();
  const deleted_at = systemClock.now().toISOString();
  await db.updateTable("project").set({ deleted_at }).where("id", "=", deleted.project_id).execute();
  const instances = new Map(
    [failed, deleted].map(({ deployment_id }) => [
      deployment_id,
      instanceDouble({ workload_id: deployment_id, state: "exited" }),
    ]),
  );
  for (const { org_id, deployment_id } of [failed, deleted])
    await db.insertInto("replica").values({ org_id, deployment_id, ordinal: 0, attempt: 1, state: "exited" }).execute();
  const line = { at: deleted_at, deployment: 1, process: "web", replica: 0, text: "x" };
  for (const { project_id, deployment_id: workload_id } of [failed, deleted])
    await logStore.appendRuntime(project_id, [line], {
      instance: { workload_id, ordinal: 0, attempt: 1 },
      cursor: "1",
    });
  const runtime = runtimeDouble({
    observe: async () => [...instances.values()],
    readOutput: async () => ({ lines: [], cursor: "1", dropped_bytes: 0 }),
    remove: async (id) => void instances.delete(id),
  });
  const platform = platformDouble({ db, vault, ports: { runtime, logStore } });
  const task = appsTask({ ...platform, ingestOutput: createIngest(platform) }, () => {});
  const positionOf = ({ deployment_id: workload_id }: { deployment_id: string }) =>
    logStore.readPosition({ workload_id, ordinal: 0, attempt: 1 });
  // What a run began goes on behind it.
  await eventually(async () => {
    await task.run(new AbortController().signal);
    await task.settle?.();
    const positions = await Promise.all([failed, deleted].map(positionOf));
    return instances.size === 0 && positions.every((position) => position === null);
  }, "the instances and the positions of their output are gone");
  const rows = await db.selectFrom("replica").select(["deployment_id", "state"]).execute();
  assert.deepEqual(rows, [{ deployment_id: deleted.deployment_id, state: "stopped" }]);
});
