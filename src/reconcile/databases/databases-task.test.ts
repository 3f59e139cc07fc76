import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { guardMs } from "../../../test/support/eventually.ts";
import { readyReplica, testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";
import { postgresHostDouble } from "../../../test/support/port-doubles.ts";
import { emptyDisk, testOrganization, type TestOrganization } from "../../../test/support/test-platform.ts";
import { awaken, databaseOf, requestDatabase } from "../../features/database/database.ts";
import { newId } from "../../kit/ids.ts";
import { silentLog } from "../../kit/log.ts";
import { until } from "../../kit/until.ts";
import type { DatabaseEndpoint, DatabaseObservation, DatabaseSpec, PostgresHost } from "../../ports/postgres-host.ts";
import type { Db } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import { openWakeups, type Wakeups } from "../../store/wakeups.ts";
import { createResting, databasesTask, type Resting } from "./databases-task.ts";

let database: TestDatabase;
let wakeups: Wakeups;
let vault: Vault;
let org: TestOrganization;

before(async () => {
  database = await testDatabase();
  wakeups = await openWakeups({ connection: database.connection, log: silentLog });
  ({ vault } = database);
  org = await testOrganization(database.db, "acme", { maxProjects: 100 });
});
after(async () => {
  await wakeups.close();
  await database.drop();
});
beforeEach(() => database.db.deleteFrom("project_database").execute());

/** A host that has every requested database, unless a test changes it. */
function hostWith(
  trouble: Partial<Pick<PostgresHost, "ensure" | "observe" | "hasProcess" | "isReplaced" | "stop">> = {},
) {
  const running = new Map<string, DatabaseEndpoint>();
  const ensure = async (spec: DatabaseSpec) => {
    const endpoint = { host: "/s", port: 1, engine_version: "17.0" };
    running.set(spec.id, endpoint);
    return endpoint;
  };
  const stop = async (id: string) => void running.delete(id);
  const observe: PostgresHost["observe"] = async ({ id }) => {
    const endpoint = running.get(id);
    return endpoint
      ? { state: "running", endpoint, size_bytes: 0, connections: 0, intact: true, compacting: false }
      : { state: "stopped" };
  };
  return postgresHostDouble({ ensure, observe, hasProcess: (id) => running.has(id), stop, ...trouble });
}

function taskOn(host: ReturnType<typeof hostWith>, db: Db = database.db, resting?: Resting) {
  return databasesTask(platformDouble({ db, vault, wakeups, ports: { postgresHost: host } }), resting);
}

/** Requests databases; resolves in the order in which the task handles them. */
async function askFor(count: number): Promise<string[]> {
  for (let made = 0; made < count; made += 1) {
    const project = await testProject({ db: database.db, vault }, org);
    await database.db
      .transaction()
      .execute((tx) => requestDatabase(tx, vault, { org_id: org.id, project_id: project.id }));
  }
  const rows = await database.db
    .selectFrom("project_database")
    .innerJoin("project", "project.id", "project_database.project_id")
    .select("project_database.id")
    .orderBy("project.number")
    .execute();
  return rows.map((row) => row.id);
}

const statuses = async () => {
  const rows = await database.db.selectFrom("project_database").select(["id", "status"]).execute();
  return new Map(rows.map((row) => [row.id, row.status]));
};
const setAll = (status: "ready" | "failed") => database.db.updateTable("project_database").set({ status }).execute();
const never = new AbortController().signal;

test("a database that cannot be observed, or whose password cannot be opened, keeps nobody from being started", async () => {
  const [silent, sealed, last] = (await askFor(3)) as [string, string, string];
  await setAll("ready");
  await database.db
    .updateTable("project_database")
    .set({ sealed_password: Buffer.from("damaged") })
    .where("id", "=", sealed)
    .execute();
  const host = hostWith();
  const { observe } = host;
  const started = new Set<string>();
  await taskOn({
    ...host,
    observe: async (spec) => {
      if (spec.id === silent) throw new Error("the query was not answered");
      return observe(spec);
    },
    ensure: async (spec) => {
      started.add(spec.id);
      return host.ensure(spec);
    },
  }).run(never);
  assert.deepEqual([...started], [last]);
});

test("databases whose PostgreSQL an update has replaced are restarted one by one, at the hour for it", async () => {
  const ids = await askFor(2);
  const waiting = new Set(ids);
  const host = hostWith({
    isReplaced: async (id) => waiting.has(id),
    stop: async (id) => void waiting.delete(id),
  });
  const leftAt = async (time: string) => {
    const clock = { now: () => new Date(`2026-01-02T${time}:00Z`) };
    const settings = { restartHours: { startHour: 23, hours: 2 } };
    const platform = platformDouble({
      db: database.db,
      vault,
      wakeups,
      clock,
      settings,
      ports: { postgresHost: host },
    });
    await databasesTask(platform).run(never);
    return waiting.size;
  };
  assert.equal(await leftAt("22:59"), 2, "it makes them, and it is not the hour");
  assert.equal(await leftAt("23:00"), 1);
  assert.equal(await leftAt("01:00"), 1);
  const [left] = waiting;
  const { org_id, project_id } = await database.db
    .selectFrom("project_database")
    .select(["org_id", "project_id"])
    .where("id", "=", left as string)
    .executeTakeFirstOrThrow();
  const operation = { id: newId("bop"), org_id, project_id, kind: "backup", database_name: "x" } as const;
  await database.db.insertInto("backup_operation").values(operation).execute();
  assert.equal(await leftAt("00:59"), 1, "it is being backed up");
  await database.db.deleteFrom("backup_operation").execute();
  assert.equal(await leftAt("00:59"), 0);
});

test("while a server hangs in its start, the others are started, and the stop of the platform ends the waiting", async () => {
  const [hanging, other] = (await askFor(2)) as [string, string];
  const host = hostWith();
  const stopping = new AbortController();
  const task = taskOn({
    ...host,
    observe: host.observe,
    ensure: (spec, signal) =>
      spec.id === hanging
        ? new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason as Error)))
        : host.ensure(spec),
  });
  const run = task.run(stopping.signal);
  const ready = async () => ((await statuses()).get(other) === "ready" ? true : undefined);
  assert.ok(await until(ready, { timeoutMs: guardMs }), "the other was not started");
  stopping.abort(new Error("the platform is stopping"));
  await run;
  await task.settle?.();
  assert.equal((await statuses()).get(hanging), "provisioning");
});

test("a database that runs is never called failed because its row could not be written, and the next run writes it", async () => {
  const [id] = (await askFor(1)) as [string];
  const host = hostWith();
  const away = new Proxy(database.db, {
    get: (db, name) => {
      if (name === "transaction") throw new Error("timeout exceeded when trying to connect");
      const value: unknown = Reflect.get(db, name, db);
      return typeof value === "function" ? (value.bind(db) as unknown) : value;
    },
  });
  await taskOn(host, away).run(never);
  assert.equal((await statuses()).get(id), "provisioning");
  await taskOn(host).run(never);
  assert.equal((await statuses()).get(id), "ready");
});

test("a server that an earlier control plane left running is brought in line once, and stays ready when that fails", async () => {
  const [id] = (await askFor(1)) as [string];
  const host = hostWith();
  await taskOn(host).run(never);
  let asked = 0;
  const task = taskOn({
    ...host,
    observe: host.observe,
    ensure: async (spec) => {
      asked += 1;
      if (asked === 1) throw new Error("the disk is full");
      return host.ensure(spec);
    },
  });
  await task.run(never);
  assert.equal((await statuses()).get(id), "ready");
  await task.run(never);
  await task.run(never);
  assert.equal(asked, 2);
});

test("a failed row becomes ready although its server runs already", async () => {
  const [id] = (await askFor(1)) as [string];
  const host = hostWith();
  await taskOn(host).run(never);
  await setAll("failed");
  await taskOn(host).run(never);
  assert.equal((await statuses()).get(id), "ready");
});

test("a role that its owner changed is put right at the next look, and a resting database that went away at once", async () => {
  const [id] = (await askFor(1)) as [string];
  const host = hostWith();
  let [changed, looks, hasProcess, nowMs] = [false, 0, true, 0];
  const task = taskOn(
    {
      ...host,
      hasProcess: () => hasProcess,
      observe: async (spec) => {
        looks += 1;
        const seen = await host.observe(spec);
        return seen.state === "running" ? { ...seen, intact: !changed } : seen;
      },
      ensure: async (spec) => {
        changed = false;
        return host.ensure(spec);
      },
    },
    database.db,
    createResting(() => nowMs),
  );
  for (let run = 0; run < 4; run += 1) await task.run(never);
  assert.equal(looks, 1, "it rests once it was found in order");
  changed = true;
  nowMs += 60_000;
  await task.run(never);
  assert.equal(changed, false);
  await task.run(never);
  const before = looks;
  hasProcess = false;
  await task.run(never);
  assert.equal(looks, before + 1);
  assert.equal((await statuses()).get(id), "ready");
});

test("a database that its host moved to another server gets that address in its row, and its application new variables", async () => {
  const [id] = (await askFor(1)) as [string];
  const host = hostWith();
  await taskOn(host).run(never);
  const row = () =>
    database.db
      .selectFrom("project_database as it")
      .innerJoin("project", "project.id", "it.project_id")
      .select(["it.host", "it.port", "it.status", "it.org_id", "it.project_id", "project.variables_changed_at"])
      .where("it.id", "=", id)
      .executeTakeFirstOrThrow();
  const { org_id, project_id, variables_changed_at: before } = await row();
  const owner = { org_id, project_id };
  const build_id = await testBuild(database, owner, { status: "succeeded" });
  await testDeployment({ db: database.db, vault }, owner, { build_id, number: 1, status: "active" });
  const endpoint = { host: "10.0.0.8", port: 5432, engine_version: "17.0" };
  const moved = postgresHostDouble({
    hasProcess: () => true,
    observe: async (spec) => ({ ...(await host.observe(spec)), endpoint }) as DatabaseObservation,
    ensure: async () => endpoint,
  });
  await taskOn(moved).run(never);
  const { host: at, port, status, variables_changed_at } = await row();
  assert.deepEqual([at, port, status], ["10.0.0.8", 5432, "ready"]);
  assert.notEqual(variables_changed_at, before);
  await taskOn(moved).run(never);
  assert.deepEqual((await row()).variables_changed_at, variables_changed_at, "once is enough");
});

test("the database of a deleted project rests, and runs for a backup and again once the project is undeleted", async () => {
  const [id] = (await askFor(1)) as [string];
  await setAll("ready");
  const { db } = database;
  const row = await db.selectFrom("project_database").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
  const { org_id, project_id } = row;
  const setDeleted = (deleted_at: Date | null) =>
    db.updateTable("project").set({ deleted_at }).where("id", "=", project_id).execute();
  const isStarted = async () => {
    const host = hostWith();
    await taskOn(host).run(never);
    return host.hasProcess(id);
  };
  await setDeleted(new Date());
  assert.equal(await isStarted(), false);
  const backup = { id: newId("bak"), org_id, project_id };
  await db
    .insertInto("backup")
    .values({ ...backup, origin: "final" })
    .execute();
  const operation = { org_id, project_id, backup_id: backup.id, id: newId("bop"), kind: "backup" } as const;
  await db.insertInto("backup_operation").values(operation).execute();
  assert.equal(await isStarted(), true);
  await db.deleteFrom("backup_operation").where("id", "=", operation.id).execute();
  assert.equal(await isStarted(), false);
  await setDeleted(null);
  assert.equal(await isStarted(), true);
});

test("the server of a preview that sleeps stops once nothing of the preview runs, and starts for whoever reads its data", async () => {
  const [id] = (await askFor(1)) as [string];
  await setAll("ready");
  const { db } = database;
  const { project_id } = await db
    .selectFrom("project_database")
    .select("project_id")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  const parent = await testProject({ db, vault }, org);
  const set = (preview: { preview_of?: string; git_branch?: string; preview_expires_at?: Date }) =>
    db
      .updateTable("project")
      .set({ sleep: "asleep", ...preview })
      .where("id", "=", project_id)
      .execute();
  const owner = { org_id: org.id, project_id };
  const build_id = await testBuild({ db }, owner, { status: "succeeded" });
  const deployment_id = await testDeployment({ db, vault }, owner, { build_id, number: 1, status: "active" });
  const replica = { org_id: org.id, deployment_id, ordinal: 0, address: { host: "10.9.8.7", port: 3000 } };
  const host = hostWith();
  const task = taskOn(host);
  const isRunning = async () => {
    await task.run(never);
    return host.hasProcess(id);
  };
  assert.equal(await isRunning(), true);
  await set({});
  assert.equal(await isRunning(), true, "it is no preview");
  await readyReplica(db, replica);
  await set({ preview_of: parent.id, git_branch: "cub", preview_expires_at: new Date() });
  assert.equal(await isRunning(), true, "its replica is still ending");
  await db.updateTable("replica").set({ state: "stopped" }).where("deployment_id", "=", deployment_id).execute();
  assert.equal(await isRunning(), false);

  const row = await databaseOf(db, org.id, project_id);
  assert.equal(row?.is_asleep, true);
  const woken = awaken({ db, vault, wakeups, ports: { postgresHost: host } }, row);
  await until(async () => (await isRunning()) || undefined, { timeoutMs: guardMs });
  await woken;
  assert.equal((await databaseOf(db, org.id, project_id))?.is_asleep, false);
});

const mib = 1024 ** 2;
let nowMs = 0;
const resting = createResting(() => nowMs);
const small = { bytes: 10 * mib, limitBytes: 100 * mib };
const disk = (available: number) => ({
  ...emptyDisk,
  observe: async () => ({
    total_bytes: 9000 * mib,
    available_bytes: available,
    is_low: false,
    is_short: false,
    is_full: false,
  }),
});

test("a database in order rests for half a minute, unless it is near its limit", () => {
  assert.equal(resting.isResting("one"), false);
  resting.rest("one", small);
  resting.rest("large", { bytes: 60 * mib, limitBytes: 100 * mib });
  assert.deepEqual([resting.isResting("one"), resting.isResting("large")], [true, false]);
  nowMs += 31_000;
  assert.equal(resting.isResting("one"), false);
  resting.rest("one", small);
  resting.wake("one");
  assert.equal(resting.isResting("one"), false);
});

test("when much was written to the disk, by many small writes too, no database rests", async () => {
  await resting.begin(disk(1000 * mib));
  resting.rest("one", small);
  await resting.begin(disk(960 * mib));
  assert.equal(resting.isResting("one"), true);
  await resting.begin(disk(930 * mib));
  assert.equal(resting.isResting("one"), false);
  resting.rest("one", small);
  await resting.begin(disk(920 * mib));
  assert.equal(resting.isResting("one"), true);
});
