import assert from "node:assert/strict";
import { copyFile, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import pg from "pg";
import { dropClone } from "../../tools/template-db/template.ts";
import { testServer } from "../../tools/template-db/test-server.ts";
import beforeBaseline from "./before-baseline.json" with { type: "json" };
import { migrate, pendingMigrations } from "./migrate.ts";

const server = await testServer();
const folder = await mkdtemp(join(tmpdir(), "berth-migrate-"));
const database = `berth_migrate_${process.pid}`;
const connection = { ...server, database };
const expanding = "-- expand\ncreate table two (id integer); insert into two values (1)";

beforeEach(async () => {
  await dropClone(server, database);
  await onServer(server, `create database ${database}`);
  await writeFile(join(folder, "0001-one.sql"), "-- expand\ncreate table one (id integer)");
  await writeFile(join(folder, "0002-two.sql"), expanding);
  await rm(join(folder, "0001-baseline.sql"), { force: true });
  await rm(join(folder, "0003-three.sql"), { force: true });
});
after(async () => {
  await dropClone(server, database);
  await rm(folder, { recursive: true });
});

test("files are applied in their order, once", async () => {
  assert.deepEqual(await migrate({ connection, folder }), ["0001-one.sql", "0002-two.sql"]);
  assert.deepEqual(await migrate({ connection, folder }), []);
});

test("an empty database has nothing pending and gets every file; a used one names what it would apply", async () => {
  assert.deepEqual(await pendingMigrations({ connection, folder }), []);
  await writeFile(join(folder, "0003-three.sql"), "-- contract\ndrop table one");
  assert.equal((await migrate({ connection, folder })).length, 3);
  await writeFile(join(folder, "0004-four.sql"), "-- expand\ncreate table four (id integer)");
  assert.deepEqual(await pendingMigrations({ connection, folder }), ["0004-four.sql"]);
  await rm(join(folder, "0004-four.sql"));
});

test("two starters at once apply each file once", async () => {
  const applied = await Promise.all([1, 2, 3, 4].map(() => migrate({ connection, folder })));
  assert.deepEqual(applied.flat().sort(), ["0001-one.sql", "0002-two.sql"]);
  assert.deepEqual(await onServer(connection, "select id from two"), [{ id: 1 }]);
});

test("a file that was changed after it had been applied is refused by name", async () => {
  await migrate({ connection, folder });
  await writeFile(join(folder, "0001-one.sql"), "-- expand\ncreate table other (id integer)");
  await assert.rejects(migrate({ connection, folder }), /0001-one\.sql was changed/);
});

test("a version runs on a schema that a newer one expanded, not on one that it contracted, which only finalizing does", async () => {
  await migrate({ connection, folder });
  await rm(join(folder, "0002-two.sql"));
  assert.deepEqual(await migrate({ connection, folder }), []);
  await writeFile(join(folder, "0002-two.sql"), expanding);
  await writeFile(join(folder, "0003-three.sql"), "-- contract\ndrop table one");
  assert.deepEqual(await pendingMigrations({ connection, folder }), []);
  assert.deepEqual(await migrate({ connection, folder }), []);
  assert.deepEqual(await pendingMigrations({ connection, folder, finalize: true }), ["0003-three.sql"]);
  assert.deepEqual(await migrate({ connection, folder, finalize: true }), ["0003-three.sql"]);
  await rm(join(folder, "0003-three.sql"));
  await assert.rejects(migrate({ connection, folder }), /A newer version of Berth .*0003-three\.sql/);
});

test("a file that does not say whether it expands or contracts is refused", async () => {
  await writeFile(join(folder, "0003-three.sql"), "create table three (id integer)");
  await assert.rejects(migrate({ connection, folder }), /first line of sql\/0003-three\.sql/);
});

describe("a database of the time before the baseline", () => {
  const before = Object.entries(beforeBaseline as Record<string, string>);
  const own = join(import.meta.dirname, "../../sql");

  /** Gives the database the baseline's schema, and a ledger as it was then. */
  async function prepare(lines: readonly (readonly [string, string])[]): Promise<void> {
    await copyFile(join(own, "0001-baseline.sql"), join(folder, "0001-baseline.sql"));
    for (const name of ["0001-one.sql", "0002-two.sql"]) await rm(join(folder, name), { force: true });
    await migrate({ connection, folder });
    await onServer(connection, "delete from schema_migration; alter table schema_migration drop column kind");
    for (const [name, sha256] of lines)
      await onServer(connection, `insert into schema_migration (name, sha256) values ('${name}', '${sha256}')`);
  }

  test("has the baseline's schema if it applied all of the 52 migrations", async () => {
    await prepare(before);
    assert.deepEqual(await migrate({ connection, folder }), []);
    assert.deepEqual(await onServer(connection, "select name, kind from schema_migration"), [
      { name: "0001-baseline.sql", kind: "expand" },
    ]);
  });

  test("also if it applied one of them under its first name", async () => {
    await prepare(before.map(([name, sum]) => [name.replace("0044-database-host", "0046-database-host"), sum]));
    assert.deepEqual(await migrate({ connection, folder }), []);
  });

  test("is refused with the version to start first if it lacks one", async () => {
    await prepare(before.slice(0, -1));
    await assert.rejects(migrate({ connection, folder }), /Start the version of commit 738431c0 once/);
    assert.equal((await onServer(connection, "select from schema_migration")).length, 51);
  });
});

test("every number of the platform's own migrations is used once, without a gap", async () => {
  const names = (await readdir(join(import.meta.dirname, "../../sql"))).filter((name) => /^\d{4}-/.test(name)).sort();
  assert.deepEqual(
    names.map((name) => Number(name.slice(0, 4))),
    names.map((_, index) => index + 1),
  );
});

async function onServer(config: pg.ClientConfig, text: string): Promise<unknown[]> {
  const client = new pg.Client(config);
  await client.connect();
  try {
    return (await client.query(text)).rows as unknown[];
  } finally {
    await client.end();
  }
}
