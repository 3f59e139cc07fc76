import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { sql } from "kysely";
import { deployedProject, type CronProject } from "../../../test/support/cron-platform.ts";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { readyReplica } from "../../../test/support/fixtures.ts";
import { platformDouble, testSettings } from "../../../test/support/platform-double.ts";
import { edgeDouble, postgresHostDouble } from "../../../test/support/port-doubles.ts";
import { recordCrash } from "../../features/activity/activity.ts";
import { openMessage } from "../../features/notifications/notifications.ts";
import { newId } from "../../kit/ids.ts";
import { silentLog } from "../../kit/log.ts";
import type { EdgeStatus } from "../../ports/edge.ts";
import type { Vault } from "../../store/vault.ts";
import { openWakeups, type Wakeups } from "../../store/wakeups.ts";
import type { Task, MonitorSettings } from "../platform.ts";
import { folderSizes, monitorsTask } from "./monitors-task.ts";

let database: TestDatabase;
let wakeups: Wakeups;
let vault: Vault;
let folder: string;
let git: { host: string; port: number };
const ssh = createServer((socket) => socket.end("SSH-2.0-test\r\n"));

before(async () => {
  database = await testDatabase();
  wakeups = await openWakeups({ connection: database.connection, log: silentLog });
  folder = await mkdtemp(join(tmpdir(), "berth-monitors-"));
  ({ vault } = database);
  await new Promise<void>((resolve) => ssh.listen(0, "127.0.0.1", resolve));
  git = { host: "127.0.0.1", port: (ssh.address() as AddressInfo).port };
});
after(async () => {
  ssh.close();
  await wakeups.close();
  await database.drop();
  await rm(folder, { recursive: true });
});
beforeEach(async () => {
  for (const table of ["monitor_check", "alert", "machine", "notification"])
    await sql`delete from ${sql.table(table)}`.execute(database.db);
  await sql`update deployment set status = 'retired' where status = 'active'`.execute(database.db);
});

/** Faults that a test causes. */
interface Trouble {
  readonly machine?: string;
  readonly roles?: readonly string[];
  readonly settings?: Partial<MonitorSettings>;
  readonly edge?: () => Promise<Partial<EdgeStatus>>;
  readonly git?: { host: string; port: number } | null;
}

function monitor(trouble: Trouble = {}): Task {
  const fine = { running: true, route_version: 1_000_000, listen: "127.0.0.1:1", detail: "" };
  const edge = { ...fine, listen_tls: null, certificate_version: 0 };
  const { backups, monitors } = testSettings;
  const machine = trouble.machine ?? "host";
  const platform = platformDouble({
    ...{ db: database.db, vault, wakeups },
    ports: {
      edge: edgeDouble({ observe: async () => ({ ...edge, ...(await trouble.edge?.()) }) }),
      postgresHost: postgresHostDouble({ observe: async () => ({ state: "stopped" }) }),
      notifiers: [{ name: "test", deliver: async () => ({ outcome: "delivered" }) }],
    },
    settings: {
      releaseTimeoutMs: 600_000,
      backups: { ...backups, window: { startHour: 0, hours: 24 } },
      monitors: { ...monitors, machine, dataDir: folder, ...trouble.settings },
    },
  });
  const cron = {
    name: "cron",
    period_ms: 1000,
    last_run_at: null,
    last_ok_at: new Date().toISOString(),
    detail: "",
    failing: false,
  };
  return monitorsTask(platform, {
    roles: trouble.roles ?? ["api", "git", "reconcile", "edge"],
    tasks: () => [cron],
    git: () => (trouble.git === undefined ? git : trouble.git),
  });
}

const signal = new AbortController().signal;

/** Runs the checks; a task's first run does not. */
async function look(task: Task, times = 1): Promise<void> {
  await task.run(signal);
  for (let index = 0; index < times; index += 1) await task.run(signal);
}

/** Makes all findings and messages this much older. */
async function pass(minutes: number): Promise<void> {
  const span = sql`make_interval(mins => ${minutes})`;
  await sql`update monitor_check set since = since - ${span}, bad_since = bad_since - ${span}, last_ok_at = last_ok_at - ${span}`.execute(
    database.db,
  );
  await sql`update alert set opened_at = opened_at - ${span}, resolved_at = resolved_at - ${span}, notify_at = notify_at - ${span}`.execute(
    database.db,
  );
}

async function check(name: string, subject = "") {
  return database.db
    .selectFrom("monitor_check")
    .selectAll()
    .where("name", "=", name)
    .where("subject", "=", subject)
    .executeTakeFirst();
}

async function alerts(name: string) {
  return database.db.selectFrom("alert").selectAll().where("name", "=", name).orderBy("id").execute();
}

async function messages(): Promise<string[]> {
  const rows = await database.db.selectFrom("notification").select(["id", "sealed_message"]).orderBy("id").execute();
  return rows.map(
    ({ id, sealed_message }) => openMessage(vault, { id, sealed_message: sealed_message as Buffer }).subject,
  );
}

/** A database whose rows say ready although no server runs. Resolves with its id. */
async function readyDatabase({ org_id, project_id, slug }: CronProject, ready_at: Date): Promise<string> {
  const sealed_password = vault.seal(project_id, "database_password", "very secret");
  const id = `dbs_${slug}`;
  const names = { role_name: "role_x", database_name: "name_x" };
  await database.db
    .insertInto("project_database")
    .values({ id, org_id, project_id, ...names, status: "ready", ready_at, sealed_password })
    .execute();
  return id;
}

const full = { settings: { disk: { warnPercent: 0, failPercent: 0 } } };

describe("monitors", () => {
  test("a healthy platform is ok in every check but those of parts that are off, and opens no alert", async () => {
    await look(monitor());
    const rows = await database.db.selectFrom("monitor_check").select(["name", "status", "detail"]).execute();
    const names = rows.map(({ name }) => name);
    for (const name of [
      "disk",
      "memory",
      "edge",
      "git",
      "cron",
      "backups",
      "applications",
      "disk_limits",
      "control_planes",
    ])
      assert.ok(names.includes(name), name);
    const others = rows.filter(({ status }) => status !== "ok");
    assert.deepEqual(
      others.map(({ name, status }) => [name, status]),
      [["certificates", "off"]],
    );
    assert.equal(await database.db.selectFrom("alert").select("id").executeTakeFirst(), undefined);
  });

  test("the first run looks at nothing, because everything else begins at the same time", async () => {
    const report = await monitor(full).run(signal);
    assert.ok((report.againMs ?? 0) > 0);
    assert.equal(await check("disk"), undefined);
  });

  test("a full disk is one critical alert, told once, and resolved when there is room", async () => {
    const task = monitor(full);
    await look(task, 3);
    assert.equal((await check("disk"))?.status, "fail");
    const [alert, ...others] = await alerts("disk");
    assert.deepEqual(
      [alert?.severity, alert?.machine, alert?.told_severity, others.length],
      ["critical", "host", "critical", 0],
    );
    await look(monitor());
    assert.notEqual((await alerts("disk"))[0]?.resolved_at, null);
    const told = await messages();
    assert.deepEqual(
      [told[0], told.at(-1)],
      ["Berth, critical: disk (host) and 1 more", "Berth, resolved: disk (host) and 1 more"],
    );
    assert.equal(told.length, 2);
  });

  test("an alert that comes back during the pause is shown at once and told after it", async () => {
    await look(monitor(full));
    await look(monitor());
    await look(monitor(full));
    const [first, second] = await alerts("disk");
    assert.deepEqual([first?.resolved_at === null, second?.resolved_at, second?.told_severity], [false, null, null]);
    assert.equal((await messages()).length, 2);
    await pass(20);
    await look(monitor(full));
    assert.equal((await messages()).length, 3);
  });

  test("an alert that came and went during the pause is never told", async () => {
    for (const trouble of [full, {}, full, {}]) await look(monitor(trouble));
    assert.equal((await alerts("disk")).length, 2);
    assert.equal((await messages()).length, 2);
  });

  test("a warning that turns into a failure makes its alert graver and is told again", async () => {
    const warn = { settings: { disk: { warnPercent: 0, failPercent: 101 } } };
    await look(monitor(warn));
    assert.deepEqual(await alerts("disk"), []);
    await pass(10);
    await look(monitor(warn));
    assert.equal((await alerts("disk"))[0]?.severity, "warning");
    await look(monitor(full));
    const [alert, ...others] = await alerts("disk");
    assert.deepEqual([alert?.severity, others.length], ["critical", 0]);
    assert.equal((await messages()).length, 2);
  });

  test("an edge that has ended is an alert once that lasts", async () => {
    const stopped = monitor({ edge: async () => ({ running: false, route_version: 0, listen: null, detail: "" }) });
    await look(stopped);
    assert.equal((await check("edge"))?.status, "fail");
    assert.deepEqual(await alerts("edge"), []);
    await pass(1);
    await look(stopped);
    assert.equal((await alerts("edge"))[0]?.severity, "critical");
  });

  test("git that does not greet is a failure", async () => {
    await look(monitor({ git: null }));
    assert.equal((await check("git"))?.status, "fail");
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    await look(monitor({ git: { host: "127.0.0.1", port } }));
    assert.equal((await check("git"))?.status, "fail");
  });

  test("a check that cannot look is unknown, and what it knew before stays", async () => {
    const project = await crashing(5);
    const subject = await nameOf(project);
    await look(monitor());
    const broken = monitor({ edge: () => Promise.reject(new Error("no")), settings: { dataDir: "/nonexistent" } });
    // The machine's own description needs the folder too, so the task itself fails.
    await assert.rejects(look(broken));
    assert.equal((await check("applications", subject))?.status, "fail");
    await look(monitor({ edge: () => Promise.reject(new Error("no")) }));
    assert.equal((await check("edge"))?.status, "unknown");
  });

  test("five crashes in five minutes are an alert that names the project, and a redeploy resolves it", async () => {
    const project = await crashing(4);
    const subject = await nameOf(project);
    await look(monitor());
    assert.equal((await check("applications", subject))?.status, "warn");
    assert.deepEqual(
      (await alerts("applications")).filter((alert) => alert.subject === subject),
      [],
    );
    await crash(project, 5);
    await look(monitor());
    const open = (await alerts("applications")).filter((alert) => alert.subject === subject);
    assert.deepEqual(
      open.map(({ severity, resolved_at }) => [severity, resolved_at]),
      [["critical", null]],
    );
    await database.db
      .updateTable("deployment")
      .set({ status: "retired" })
      .where("id", "=", project.deployment_id)
      .execute();
    await look(monitor());
    assert.equal(
      (await alerts("applications")).filter((alert) => alert.resolved_at === null && alert.subject === subject).length,
      0,
    );
  });

  test("a database that does not answer is an alert with its project's name and nothing else of it", async () => {
    const { db } = database;
    const project = await deployedProject({ db, vault });
    const id = await readyDatabase(project, new Date());
    await look(monitor());
    await pass(2);
    await look(monitor());
    const [alert] = await alerts("databases");
    assert.equal(alert?.subject, await nameOf(project));
    assert.doesNotMatch(JSON.stringify(alert), /secret|role_x|name_x/);
    await db.deleteFrom("project_database").where("id", "=", id).execute();
  });

  test("only a backup that was completed and is still kept counts as one", async () => {
    const { db } = database;
    const project = await deployedProject({ db, vault });
    const { org_id, project_id } = project;
    const id = await readyDatabase(project, new Date(Date.now() - 100 * 3_600_000));
    const insert = (more: { status: "completed" | "failed" | "running"; expired_at?: Date }) =>
      db
        .insertInto("backup")
        .values({ id: newId("bak"), org_id, project_id, origin: "manual", ...more })
        .execute();
    await insert({ status: "failed" });
    await insert({ status: "running" });
    await insert({ status: "completed", expired_at: new Date() });
    await look(monitor());
    const found = await check("backups", await nameOf(project));
    assert.equal(found?.status, "fail");
    assert.match(found?.detail ?? "", /^It has no backup after/);
    await insert({ status: "completed" });
    await look(monitor());
    assert.equal(await check("backups", await nameOf(project)), undefined);
    assert.match((await check("backups"))?.detail ?? "", /^1 of 1 database has a backup/);
    await db.deleteFrom("backup").where("project_id", "=", project_id).execute();
    await db.deleteFrom("project_database").where("id", "=", id).execute();
  });

  test("what machines share is told once, and each machine has its own rows", async () => {
    const project = await crashing(6);
    const tasks = ["a", "b"].map((machine) => monitor({ machine, ...full }));
    await Promise.all(tasks.map((task) => look(task, 5)));
    const subject = await nameOf(project);
    assert.equal((await alerts("applications")).filter((alert) => alert.subject === subject).length, 1);
    assert.deepEqual((await alerts("disk")).map(({ machine }) => machine).sort(), ["a", "b"]);
    const told = (await messages()).join("\n");
    assert.equal(told.split(subject).length - 1 <= 1, true);
  });

  test("a control plane that goes silent is an alert, and forgotten after a day", async () => {
    await look(monitor({ machine: "gone", ...full }));
    await sql`update machine set seen_at = seen_at - interval '10 minutes' where name = 'gone'`.execute(database.db);
    await look(monitor());
    assert.equal((await alerts("control_planes"))[0]?.subject, "gone");
    await sql`update machine set seen_at = seen_at - interval '2 days' where name = 'gone'`.execute(database.db);
    await sql`update monitor_check set checked_at = checked_at - interval '2 days' where machine = 'gone'`.execute(
      database.db,
    );
    await look(monitor(), 2);
    const open = await database.db
      .selectFrom("alert")
      .select(["name", "machine"])
      .where("resolved_at", "is", null)
      .execute();
    assert.deepEqual(open, []);
  });
});

async function crashing(times: number): Promise<CronProject> {
  const project = await deployedProject({ db: database.db, vault });
  const { org_id, deployment_id } = project;
  await readyReplica(database.db, { org_id, deployment_id, address: { host: "127.0.0.1", port: 1 } });
  for (let count = 1; count <= times; count += 1) await crash(project, count);
  return project;
}

/** Records a crash as the apps task does. */
async function crash({ org_id, project_id, deployment_id }: CronProject, restarts: number): Promise<void> {
  const end = { out_of_memory: false, exit_code: 1, next_start_in_ms: 1000 };
  await recordCrash(database.db, { org_id, project_id, deployment: 1, process: "web", replica: 0, restarts, ...end });
  await database.db
    .updateTable("replica")
    .set({ restarts, exited_at: new Date() })
    .where("deployment_id", "=", deployment_id)
    .execute();
}

async function nameOf({ org_id, slug }: CronProject): Promise<string> {
  const row = await database.db
    .selectFrom("organization")
    .select("slug")
    .where("id", "=", org_id)
    .executeTakeFirstOrThrow();
  return `${row.slug}/${slug}`;
}

test("each folder's size is found by its name, a missing folder uses none", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "berth-sizes-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "file"), Buffer.alloc(100_000, 1));
  const sizes = await folderSizes({ full: folder, missing: join(folder, "none") }, new AbortController().signal);
  assert.ok((sizes?.["full"] ?? 0) >= 100_000, JSON.stringify(sizes));
  assert.equal(sizes?.["missing"], 0);
});

test("of no folders nothing is measured, the current folder neither", async () => {
  // An aborted measurement gives null.
  assert.deepEqual(await folderSizes({}, AbortSignal.abort()), {});
});
