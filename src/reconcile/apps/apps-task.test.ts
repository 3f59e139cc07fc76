import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { deployedProject } from "../../../test/support/cron-platform.ts";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";
import { instanceDouble, postgresHostDouble, runtimeDouble } from "../../../test/support/port-doubles.ts";
import { testOrganization } from "../../../test/support/test-platform.ts";
import { createDiskLogStore } from "../../adapters/log-store-disk/disk-log-store.ts";
import {
  changedWorkloads,
  claimAttempt,
  markCrashed,
  markDraining,
  markKept,
  markReady,
  markRunning,
  markStopped,
} from "../../features/replicas/replicas.ts";
import { systemClock } from "../../ports/clock.ts";
import type { EdgeUsage } from "../../ports/edge.ts";
import type { DatabaseObservation, DatabaseSpec } from "../../ports/postgres-host.ts";
import { createIngest } from "../logs/ingest.ts";
import { appsTask, createAskedProjects, createDatabasesComingUp, createKnownWorkloads } from "./apps-task.ts";

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
  const { db, vault } = database;
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
  // A run's work continues in the background.
  await eventually(async () => {
    await task.run(new AbortController().signal);
    await task.settle?.();
    const positions = await Promise.all([failed, deleted].map(positionOf));
    return instances.size === 0 && positions.every((position) => position === null);
  }, "the instances and the positions of their output are gone");
  const rows = await db.selectFrom("replica").select(["deployment_id", "state"]).execute();
  assert.deepEqual(rows, [{ deployment_id: deleted.deployment_id, state: "stopped" }]);
});

test("a machine that reads only what changed knows the same workloads as one that reads all", async () => {
  const { db, vault } = database;
  const { org_id, project_id, deployment_id } = await deployedProject({ db, vault });
  const machine = "here";
  const known = createKnownWorkloads({ db, machine });
  const key = { org_id, deployment_id, process: "web", ordinal: 0 };
  const image = { image_ref: "", kind: "static", web_command: "web", processes: { worker: "work" }, size_bytes: 0 };
  const project = (to: string) => () => sql`update project set ${sql.raw(to)} where id = ${project_id}`.execute(db);
  const deployment = (to: string, id = deployment_id) =>
    sql`update deployment set ${sql.raw(to)} where id = ${id}`.execute(db);
  const organization = (to: string) => () =>
    sql`update organization set suspended_at = ${sql.raw(to)} where id = ${org_id}`.execute(db);
  let next = "";
  const changes: Readonly<Record<string, () => Promise<unknown>>> = {
    "the project comes": async () => {},
    "an image with a worker is deployed": async () => {
      await deployment("status = 'retired'");
      await db
        .updateTable("deployment")
        .set({ image: JSON.stringify(image) })
        .where("id", "=", deployment_id)
        .execute();
      await deployment("status = 'active'");
    },
    "a replica is claimed": () => claimAttempt(db, key, machine),
    "it runs": () => markRunning(db, { ...key, attempt: 1, machine, host: "127.0.0.1", port: 1 }),
    "it is ready": () => markReady(db, { ...key, attempt: 1 }),
    "a worker runs": () => markRunning(db, { ...key, process: "worker", attempt: 1, machine, host: null, port: null }),
    "the project is scaled": project("replicas = 2"),
    "another deployment starts": async () => {
      const { build_id } = await db
        .selectFrom("deployment")
        .select("build_id")
        .where("id", "=", deployment_id)
        .executeTakeFirstOrThrow();
      next = await testDeployment({ db, vault }, { org_id, project_id }, { build_id, number: 9, status: "pending" });
      await deployment("status = 'starting'", next);
      await claimAttempt(db, { ...key, deployment_id: next }, machine);
    },
    "it takes over": () => deployment("taking_over = true", next),
    "the worker may run twice": () =>
      db.insertInto("process_setting").values({ org_id, project_id, process: "worker", overlap: true }).execute(),
    "the worker is to restart": () =>
      sql`update process_setting set restart_at = now() where project_id = ${project_id}`.execute(db),
    "the setting goes": () => sql`delete from process_setting where project_id = ${project_id}`.execute(db),
    "it fails": () => deployment("status = 'failed'", next),
    "its replica is gone": () =>
      markStopped(db, { deployment_id: next, process: "web" }, { ordinals: [0], forGood: true }),
    "the replica drains": () => markDraining(db, key, [0]),
    "it is kept": () => markKept(db, key, 0),
    "it crashes": () =>
      markCrashed(db, {
        ...key,
        attempt: 1,
        exit_code: 1,
        out_of_memory: false,
        restarts: 1,
        counts: true,
        pauseMs: 1,
      }),
    "it starts elsewhere": () => claimAttempt(db, key, "elsewhere"),
    "it runs here again": () => claimAttempt(db, key, machine),
    "the organization is suspended": organization("now()"),
    "it is not any more": organization("null"),
    "the project is deleted": project("deleted_at = now()"),
    "it is undeleted": project("deleted_at = null"),
  };
  let before = "";
  for (const [name, change] of Object.entries(changes)) {
    await change();
    const now = await known([deployment_id]);
    const all = await createKnownWorkloads({ db, machine })([deployment_id]);
    assert.deepEqual(sorted(now), sorted(all), name);
    assert.notEqual(JSON.stringify(sorted(now)), before, `${name}: this is to be seen`);
    before = JSON.stringify(sorted(now));
  }
  // Nothing changed, so the task reads nothing.
  const { snapshot } = await changedWorkloads(db, machine, { since: null });
  assert.deepEqual((await changedWorkloads(db, machine, { since: snapshot })).projects, []);
});

const sorted = (workloads: ReadonlyMap<string, unknown>) =>
  [...workloads].sort(([one], [other]) => one.localeCompare(other));

/** An edge that has refused this many requests of these projects, split over two counters. */
function edgeWith(refused: Record<string, number>) {
  const usage = (counter: string, project_id: string, count: number): EdgeUsage => ({
    ...{ counter, project_id, requests: count + 5, by_class: { "2": 5, "5": count } },
    ...{ bytes_in: 0, bytes_out: 0, latency_buckets: [], latency_sum_ms: 0 },
  });
  return {
    measure: async () =>
      Object.entries(refused).flatMap(([project, count]) => [
        usage("old", project, 1),
        usage("new", project, count - 1),
      ]),
  };
}

const order = async (asked: ReturnType<typeof createAskedProjects>) =>
  (await asked.first(["a", "b", "c", "d"], (project) => project)).join("");

test("after a cold start the projects whose visitors were refused start first, and keep their order otherwise", async () => {
  const refused: Record<string, number> = { c: 3, b: 0 };
  const asked = createAskedProjects(edgeWith(refused));
  assert.equal(await order(asked), "cabd");
  refused["d"] = 1;
  assert.equal(await order(asked), "cdab", "also those asked for later");
});

test("an edge that cannot be read changes nothing of the order", async () => {
  const asked = createAskedProjects({ measure: () => Promise.reject(new Error("no edge")) });
  assert.equal(await order(asked), "abcd");
});

test("an application waits for its own database after a start of the control plane or an undelete, and for a minute at most", async (t) => {
  const { db, vault } = database;
  const org = await testOrganization(db, "acme", { maxProjects: 10 });
  const [down, up, made, without] = await Promise.all(
    ["down", "up", "made", "without"].map((slug) => testProject({ db, vault }, org, slug)),
  );
  for (const [project, status] of [
    [down, "ready"],
    [up, "ready"],
    [made, "provisioning"],
  ] as const) {
    const project_id = project?.id ?? "";
    const id = `dbs_${project_id}`;
    const sealed_password = vault.seal(project_id, "database_password", "secret");
    const names = { role_name: `u${id}`, database_name: `d${id}`, sealed_password };
    await db
      .insertInto("project_database")
      .values({ id, org_id: org.id, project_id, status, ...names })
      .execute();
  }
  const asked: string[] = [];
  const observe = async ({ id }: DatabaseSpec): Promise<DatabaseObservation> => {
    asked.push(id);
    return { state: id === `dbs_${up?.id}` ? "running" : "stopped" } as DatabaseObservation;
  };
  const clock = { now: () => new Date(Date.now() + passedMs) };
  let passedMs = 0;
  const platform = platformDouble({ db, vault, clock, ports: { postgresHost: postgresHostDouble({ observe }) } });
  const comingUp = createDatabasesComingUp(platform);
  const all = new Set([down, up, made, without].map((project) => project?.id ?? ""));
  assert.deepEqual(await comingUp(all), new Set([down?.id]));
  assert.deepEqual(await comingUp(new Set([without?.id ?? ""])), new Set());
  assert.equal(asked.length, 2, "only databases that ran before, of the projects in question, are observed");
  t.mock.method(performance, "now", () => Number.MAX_SAFE_INTEGER);
  passedMs = 3_600_000;
  assert.deepEqual(await comingUp(all), new Set());
  await db
    .updateTable("project")
    .set({ updated_at: clock.now() })
    .where("id", "=", down?.id ?? "")
    .execute();
  assert.deepEqual(
    await comingUp(all),
    new Set([down?.id]),
    "the database of an undeleted project has just been started",
  );
});
