import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { guardMs } from "../../../test/support/eventually.ts";
import { deployedProject, type CronProject } from "../../../test/support/cron-platform.ts";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";
import { instanceDouble, runtimeDouble } from "../../../test/support/port-doubles.ts";
import { createDiskLogStore } from "../../adapters/log-store-disk/disk-log-store.ts";
import { newId } from "../../kit/ids.ts";
import type { Vault } from "../../store/vault.ts";
import { createIngest } from "./ingest.ts";
import { logsTask } from "./logs-task.ts";

let database: TestDatabase;
let vault: Vault;
let folder: string;

before(async () => {
  database = await testDatabase();
  folder = await mkdtemp(join(tmpdir(), "berth-logs-task-"));
  ({ vault } = database);
});
after(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

/** A machine with applications: the lines of each deployment, and the deployments whose output cannot be read. */
function machine() {
  const written = new Map<string, string[]>();
  const broken = new Set<string>();
  const opened: string[] = [];
  const exits = new Map<string, number>();
  let next = async () => {};
  let touched = 0;
  let reads = 0;
  const runtime = runtimeDouble({
    observe: async () =>
      [...written].map(([workload_id, lines]) => {
        const code = exits.get(workload_id);
        const end =
          code !== undefined && ({ state: "exited", exit: { code, out_of_memory: false, at: new Date() } } as const);
        return instanceDouble({ workload_id, output_mark: `${touched}:${lines.length}`, ...end });
      }),
    async readOutput({ workload_id }, cursor) {
      reads += 1;
      const work = next;
      next = async () => {};
      await work();
      if (broken.has(workload_id)) throw new Error("not a cursor");
      const lines = written.get(workload_id) ?? [];
      return { lines: lines.slice(Number(cursor ?? 0)), cursor: String(lines.length), dropped_bytes: 0 };
    },
  });
  const logStore = createDiskLogStore({ dir: folder });
  const watched: Vault = {
    ...vault,
    open(projectId, name, sealed) {
      opened.push(name);
      return vault.open(projectId, name, sealed);
    },
  };
  const whole = platformDouble({ db: database.db, vault: watched, ports: { runtime, logStore } });
  const task = logsTask({ ...whole, ingestOutput: createIngest(whole) });
  return {
    broken,
    exits,
    opened,
    write: (of: CronProject, ...lines: string[]) =>
      void written.set(of.deployment_id, [...(written.get(of.deployment_id) ?? []), ...lines]),
    /** Runs once, after the task has begun and before it reads the next output. */
    beforeRead(work: () => Promise<void>) {
      touched += 1;
      next = work;
    },
    reads: () => reads,
    run: () => task.run(AbortSignal.timeout(guardMs)),
    log: async (of: CronProject) =>
      (await logStore.readRuntime(of.project_id, { limit: 100 })).lines.map(({ text }) => text),
  };
}

async function createDatabase({ org_id, project_id }: CronProject, password: string): Promise<void> {
  const sealed_password = vault.seal(project_id, "database_password", password);
  const names = { id: newId("dbs"), role_name: "u123456789", database_name: "d123456789", status: "ready" } as const;
  await database.db
    .insertInto("project_database")
    .values({ org_id, project_id, ...names, sealed_password, host: "/nowhere", port: 5432 })
    .execute();
}

test("the password of a database that was made after the deployment is not seen in its log", async () => {
  const { write, run, log, opened, beforeRead } = machine();
  const app = await deployedProject({ db: database.db, vault });
  write(app, "no database yet; the secret is cron secret");
  await run();
  beforeRead(async () => {
    await createDatabase(app, "made-afterwards");
    write(app, "started again with made-afterwards");
  });
  await run();
  write(app, "still with made-afterwards");
  await run();
  assert.deepEqual(await log(app), [
    "no database yet; the secret is [redacted]",
    "started again with [redacted]",
    "still with [redacted]",
  ]);
  assert.deepEqual(opened, [`deployment:${app.deployment_id}`, "cron_secret", "database_password"]);
});

test("the name of a database that an application keeps after a promotion is hidden in its log", async () => {
  const { write, run, log } = machine();
  const app = await deployedProject({ db: database.db, vault });
  await createDatabase(app, "password-of-both");
  await database.db
    .updateTable("deployment")
    .set({ database_name: "kept12345" })
    .where("id", "=", app.deployment_id)
    .execute();
  write(app, "connected to kept12345");
  await run();
  assert.deepEqual(await log(app), ["connected to [redacted]"]);
});

test("an application is read again only when it may have written something", async () => {
  const { write, run, reads } = machine();
  const app = await deployedProject({ db: database.db, vault });
  write(app, "one");
  for (let runs = 0; runs < 3; runs += 1) await run();
  const first = reads();
  await run();
  assert.equal(reads(), first);
  write(app, "two");
  await run();
  assert.ok(reads() > first);
});

test("what applications that write nothing keep secret is not opened", async () => {
  const { write, run, opened } = machine();
  const app = await deployedProject({ db: database.db, vault });
  write(app);
  await run();
  assert.deepEqual(opened, []);
});

test("an application whose output cannot be read does not keep the output of others from being stored", async () => {
  const { write, run, log, broken } = machine();
  const [first, second] = [
    await deployedProject({ db: database.db, vault }),
    await deployedProject({ db: database.db, vault }),
  ];
  for (const app of [first, second]) write(app, "said");
  broken.add(first.deployment_id);
  assert.equal((await run()).detail, "2 workloads, 1 could not be read");
  assert.deepEqual([await log(first), await log(second)], [[], ["said"]]);
  broken.clear();
  await run();
  assert.deepEqual(await log(first), ["said"]);
});

test("a shell's word that its program was terminated is not logged for a replica that was stopped, and is for any other", async () => {
  const { write, run, log, exits } = machine();
  const apps = [await deployedProject({ db: database.db, vault }), await deployedProject({ db: database.db, vault })];
  for (const [index, app] of apps.entries()) {
    write(app, "bye", "Terminated");
    exits.set(app.deployment_id, index === 0 ? 143 : 1);
  }
  await run();
  assert.deepEqual(await Promise.all(apps.map(log)), [["bye"], ["bye", "Terminated"]]);
});
