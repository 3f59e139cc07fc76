// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { open, readdir, readFile, rename, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { restoredDatabases } from "../../src/features/backups/restored.ts";
import { testToken } from "../support/test-platform.ts";
import { startBackupPlatform, type BackupPlatform, type TestProject } from "../support/backups.ts";
import { eventually } from "../support/eventually.ts";

const schema = `
  create table notes (id int generated always as identity primary key, body text);
  insert into notes (body) select repeat(md5(i::text), 20) from generate_series(1, 3000) i;
  create table empty (a int);
  create view recent as select * from notes where id > 2990;`;

describe("backups", { skip: missingPart }, () => {
  let running: BackupPlatform;
  let project: TestProject;
  let gate = Promise.resolve();

  before(async () => {
    running = await startBackupPlatform({
      storage: (disk) => ({ ...disk, put: (...args) => gate.then(() => disk.put(...args)) }),
    });
    project = await running.project();
    await project.query(schema);
  });
  after(() => running?.close());

  const of = (rest: string) => `/v1/projects/${project.slug}${rest}`;
  const scratch = async () => {
    const names = await running.host.listDatabases(specOfRow(await project.row()));
    return names.filter((name) => name.startsWith("verify_"));
  };
  const specOfRow = (row: Awaited<ReturnType<TestProject["row"]>>) => ({
    ...row,
    password: "unused",
    access: "open" as const,
  });
  const file = async (id: string) => {
    const row = await running.platform.db
      .selectFrom("backup")
      .select("storage_key")
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    return join(running.backupsDir, row.storage_key ?? "");
  };
  const liveState = async () => {
    const rows = await project.query(`select (select md5(string_agg(n::text, ',' order by id)) from notes n) as notes,
      (select md5(string_agg(c::text, ',' order by oid)) from (select oid, relname, relfilenode from pg_class) c) as catalogue`);
    return rows[0];
  };

  it("answers at once and continues in the background", async () => {
    const asked = await running.call("POST", of("/backups"));
    assert.equal(asked.status, 201, asked.text);
    assert.deepEqual(Object.keys(asked.body).sort(), ["id", "status"]);
    const done = await running.ended(asked.body["id"] as string);
    assert.equal(done.status, "completed");
    assert.deepEqual(done.tables, [
      { table: "public.empty", rows: 0 },
      { table: "public.notes", rows: 3000 },
    ]);
    const stored = await readFile(await file(done.id));
    assert.equal(stored.length, done.size_bytes);
    const { createHash } = await import("node:crypto");
    assert.equal(createHash("sha256").update(stored).digest("hex"), done.sha256);
    const list = await running.call("GET", of("/backups"));
    assert.equal((list.body["backups"] as { id: string }[])[0]?.id, done.id);
  });

  it("verifies without mismatch although an application writes 200 rows a second during the backup", async () => {
    const writer = await project.login();
    let acknowledged = 0;
    let writing = true;
    const began = performance.now();
    const writes = (async () => {
      while (writing) {
        await writer.query("insert into notes (body) values ($1)", [`while ${acknowledged}`]);
        acknowledged += 1;
        await sleep(Math.max(0, began + acknowledged * 5 - performance.now()));
      }
    })();
    const made = [];
    while (acknowledged < 600) made.push(await running.backup(project.slug));
    writing = false;
    await writes;
    await writer.end();
    for (const { id } of made) {
      const { body } = await running.call("POST", `/v1/backups/${id}/verify`);
      assert.equal(body["status"], "verified", JSON.stringify(body));
      for (const { expected, actual } of body["tables"] as { expected: number; actual: number }[])
        assert.equal(actual, expected);
    }
    const counts = made.map(({ tables }) => tables.find(({ table }) => table === "public.notes")?.rows ?? 0);
    assert.deepEqual(
      counts,
      [...counts].sort((a, b) => a - b),
    );
    assert.deepEqual(await scratch(), []);
  });

  it("restores into a new database, and neither a restore nor a verification changes the live database", async () => {
    const { id } = await running.backup(project.slug);
    const before = await liveState();
    const restored = await running.call("POST", of("/restore"), {});
    assert.equal(restored.status, 201, restored.text);
    assert.equal(restored.body["backup_id"], id);
    assert.equal((await running.call("POST", `/v1/backups/${id}/verify`)).body["status"], "verified");
    assert.deepEqual(await liveState(), before);
    const name = restored.body["database"] as string;
    assert.deepEqual(
      await project.query("select count(*)::int as n from recent", name),
      await project.query("select count(*)::int as n from recent"),
    );
    const further = await restoredDatabases(running.platform.db, running.org.id, project.id);
    assert.deepEqual(
      further.map(({ database, backup_id }) => ({ database, backup_id })),
      [{ database: name, backup_id: id }],
    );
    await running.call("DELETE", of(`/database/restored/${name}`));
  });

  for (const [what, damage] of [
    ["one flipped bit", flip],
    ["a missing end", (path: string) => truncate(path, 1000)],
    ["no content", (path: string) => truncate(path, 0)],
    ["no file", (path: string) => rm(path)],
  ] as const) {
    it(`detects ${what} before it changes anything`, async () => {
      const { id } = await running.backup(project.slug);
      const before = await running.host.listDatabases(specOfRow(await project.row()));
      await damage(await file(id));
      const verified = await running.call("POST", `/v1/backups/${id}/verify`);
      assert.equal(verified.status, 200);
      assert.equal(verified.body["status"], "failed");
      assert.match(verified.body["reason"] as string, /file/);
      const restored = await running.call("POST", of("/restore"), { backup_id: id });
      assert.equal(restored.status, 409);
      assert.equal(restored.body["code"], "backup_damaged");
      assert.deepEqual(await running.host.listDatabases(specOfRow(await project.row())), before);
      assert.equal((await running.ended(id)).verification?.status, "failed");
    });
  }

  it("detects a file that was replaced with the intact file of another backup", async () => {
    const [one, other] = [await running.backup(project.slug), await running.backup(project.slug)];
    await project.query("insert into notes (body) values ('more')");
    const third = await running.backup(project.slug);
    await rename(await file(third.id), await file(one.id));
    assert.equal((await running.call("POST", `/v1/backups/${one.id}/verify`)).body["status"], "failed");
    assert.equal((await running.call("POST", `/v1/backups/${other.id}/verify`)).body["status"], "verified");
  });

  it("names the tables that differ", async () => {
    const { id, tables } = await running.backup(project.slug);
    const changed = tables.map((each) => (each.table === "public.notes" ? { ...each, rows: each.rows + 1 } : each));
    await running.platform.db
      .updateTable("backup")
      .set({ row_counts: JSON.stringify(changed) })
      .where("id", "=", id)
      .execute();
    const { body } = await running.call("POST", `/v1/backups/${id}/verify`);
    assert.equal(body["status"], "mismatch");
    const differing = (body["tables"] as { table: string; expected: number; actual: number }[]).filter(
      (each) => each.expected !== each.actual,
    );
    assert.deepEqual(
      differing.map(({ table, expected, actual }) => [table, expected - actual]),
      [["public.notes", 1]],
    );
    assert.deepEqual(await scratch(), []);
  });

  it("runs one operation at a time for a project", async () => {
    // The first backup lasts until all others were requested.
    const asked = Promise.withResolvers<void>();
    const further = (await running.call("POST", of("/restore"), {})).body["database"] as string;
    gate = asked.promise;
    const answers = await Promise.all(Array.from({ length: 10 }, () => running.call("POST", of("/backups"))));
    const promoted = await running.call("POST", of("/database/promote"), { database: further });
    const dropped = await running.call("DELETE", of(`/database/restored/${further}`));
    asked.resolve();
    const made = answers.filter(({ status }) => status === 201);
    assert.equal(made.length, 1);
    for (const refused of [promoted, dropped, ...answers.filter(({ status }) => status !== 201)]) {
      assert.equal(refused.status, 409);
      assert.equal(refused.body["code"], "operation_in_progress");
    }
    await running.ended(made[0]?.body["id"] as string);
    assert.equal((await running.call("DELETE", of(`/database/restored/${further}`))).status, 204);
    const rows = await running.platform.db
      .selectFrom("backup")
      .select("id")
      .where("project_id", "=", project.id)
      .where("status", "=", "running")
      .execute();
    assert.deepEqual(rows, []);
  });

  it("promotes a restored database, and promotes the previous one again", async () => {
    const original = (await project.row()).database_name;
    await running.backup(project.slug);
    const { body } = await running.call("POST", of("/restore"), {});
    const name = body["database"] as string;
    const promoted = await running.call("POST", of("/database/promote"), { database: name });
    assert.deepEqual(promoted.body, { database: name, previous: original });
    assert.equal((await project.row()).database_name, name);
    await project.query("insert into notes (body) values ('after the promotion')");
    const listed = await running.call("GET", of("/database/restored"));
    assert.deepEqual(
      (listed.body["databases"] as { database: string }[]).map(({ database }) => database),
      [original],
    );
    assert.equal((await running.call("DELETE", of(`/database/restored/${name}`))).status, 404);
    assert.equal((await running.call("POST", of("/database/promote"), { database: original })).status, 200);
    assert.equal((await project.row()).database_name, original);
    assert.deepEqual(await project.query("select count(*)::int as n from notes where body = 'after the promotion'"), [
      { n: 0 },
    ]);
    assert.equal((await running.call("DELETE", of(`/database/restored/${name}`))).status, 204);
    await gone(name);
  });

  it("keeps at most five databases beside the live one", async () => {
    const names: string[] = [];
    for (let i = 0; i < 5; i += 1)
      names.push((await running.call("POST", of("/restore"), {})).body["database"] as string);
    const refused = await running.call("POST", of("/restore"), {});
    assert.equal(refused.body["code"], "conflict", refused.text);
    for (const name of names) await running.call("DELETE", of(`/database/restored/${name}`));
    for (const name of names) await gone(name);
  });

  it("lets a token in approval mode verify, but neither restore, promote nor drop", async () => {
    const { id } = await running.backup(project.slug);
    const { body } = await running.call("POST", of("/restore"), {});
    const database = body["database"] as string;
    const { text: token } = await testToken(running.platform.db, running.org.id, {
      role: "owner",
      approval_mode: true,
    });
    const call = (method: string, path: string, given?: unknown) =>
      running.api.call(method, path, { token, body: given });
    assert.equal((await call("POST", `/v1/backups/${id}/verify`)).status, 200);
    assert.equal((await call("POST", of("/restore"), { backup_id: id })).status, 403);
    assert.equal((await call("POST", of("/database/promote"), { database })).status, 403);
    assert.equal((await call("DELETE", of(`/database/restored/${database}`))).status, 403);
    assert.equal((await running.call("DELETE", of(`/database/restored/${database}`))).status, 204);
    await gone(database);
  });

  it("names the missing database or backup", async () => {
    const bare = await running.project();
    assert.equal((await running.call("POST", `/v1/projects/${bare.slug}/restore`, {})).body["code"], "conflict");
    const missing = await running.call("POST", of("/restore"), { backup_id: "bak_nothing" });
    assert.deepEqual([missing.status, missing.body["error"]], [404, "The project has no backup with this id."]);
    const { id } = await running.backup(bare.slug);
    assert.equal((await running.call("POST", of("/restore"), { backup_id: id })).status, 404);
    assert.equal((await running.call("POST", "/v1/backups/bak_nothing/verify")).status, 404);
  });

  it("keeps the backups of a deleted project, and verifies them", async () => {
    const doomed = await running.project();
    await doomed.query("create table t (a int); insert into t values (1)");
    const { id } = await running.backup(doomed.slug);
    assert.equal((await running.call("DELETE", `/v1/projects/${doomed.slug}`)).status, 200);
    assert.equal((await running.call("POST", `/v1/projects/${doomed.slug}/backups`)).body["code"], "project_deleted");
    assert.equal((await running.call("POST", `/v1/backups/${id}/verify`)).body["status"], "verified");
    assert.ok(existsSync(await file(id)));
  });

  it("reports a schema that cannot be restored, and leaves no database behind", async () => {
    const odd = await running.project();
    await odd.query(`create table allowed (a int); create table checked (a int check (a > 0));
      create function sum_of() returns bigint language sql as 'select sum(a) from allowed';
      insert into checked values (1); alter table checked add constraint c check (sum_of() is null)`);
    const { id } = await running.backup(odd.slug);
    const { body } = await running.call("POST", `/v1/backups/${id}/verify`);
    assert.equal(body["status"], "failed");
    assert.match(body["reason"] as string, /allowed/);
    const restored = await running.call("POST", `/v1/projects/${odd.slug}/restore`, { backup_id: id });
    assert.equal(restored.body["code"], "conflict");
    assert.doesNotMatch(restored.text, /COPY|SELECT|Command was|\//);
    assert.deepEqual(
      await running.host.listDatabases({ ...(await odd.row()), password: "", access: "open" as const }),
      [(await odd.row()).database_name],
    );
  });

  async function gone(name: string): Promise<void> {
    const names = async () => running.host.listDatabases(specOfRow(await project.row()));
    await eventually(async () => !(await names()).includes(name), `${name} is dropped`);
  }

  it("leaves no unfinished file in the storage", async () => {
    assert.deepEqual(await readdir(join(running.backupsDir, ".unfinished")), []);
  });
});

async function flip(path: string): Promise<void> {
  const handle = await open(path, "r+");
  const { size } = await handle.stat();
  const at = Math.floor(size / 2);
  const byte = Buffer.alloc(1);
  await handle.read(byte, 0, 1, at);
  byte[0] = (byte[0] as number) ^ 1;
  await handle.write(byte, 0, 1, at);
  await handle.close();
}
