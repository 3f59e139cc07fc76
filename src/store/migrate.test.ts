import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";
import pg from "pg";
import { dropClone } from "../../tools/template-db/template.ts";
import { testServer } from "../../tools/template-db/test-server.ts";
import { migrate } from "./migrate.ts";

const server = await testServer();
const folder = await mkdtemp(join(tmpdir(), "berth-migrate-"));
const database = `berth_migrate_${process.pid}`;
const connection = { ...server, database };

beforeEach(async () => {
  await dropClone(server, database);
  await onServer(server, `create database ${database}`);
  await writeFile(join(folder, "0001-one.sql"), "create table one (id integer)");
  await writeFile(join(folder, "0002-two.sql"), "create table two (id integer); insert into two values (1)");
});
after(async () => {
  await dropClone(server, database);
  await rm(folder, { recursive: true });
});

test("files are applied in their order, once", async () => {
  assert.deepEqual(await migrate({ connection, folder }), ["0001-one.sql", "0002-two.sql"]);
  assert.deepEqual(await migrate({ connection, folder }), []);
});

test("two starters at once apply each file once", async () => {
  const applied = await Promise.all([1, 2, 3, 4].map(() => migrate({ connection, folder })));
  assert.deepEqual(applied.flat().sort(), ["0001-one.sql", "0002-two.sql"]);
  assert.deepEqual(await onServer(connection, "select id from two"), [{ id: 1 }]);
});

test("a file that was changed after it had been applied is refused by name", async () => {
  await migrate({ connection, folder });
  await writeFile(join(folder, "0001-one.sql"), "create table other (id integer)");
  await assert.rejects(migrate({ connection, folder }), /0001-one\.sql was changed/);
});

test("a database of a newer version is refused", async () => {
  await migrate({ connection, folder });
  await rm(join(folder, "0002-two.sql"));
  await assert.rejects(migrate({ connection, folder }), /A newer version of Berth .*0002-two\.sql/);
});

test("a file that fails leaves nothing behind and is tried again", async () => {
  await writeFile(join(folder, "0002-two.sql"), "create table two (id integer); select 1 / 0");
  await assert.rejects(migrate({ connection, folder }), /0002-two\.sql failed/);
  await writeFile(join(folder, "0002-two.sql"), "create table two (id integer)");
  assert.deepEqual(await migrate({ connection, folder }), ["0002-two.sql"]);
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
