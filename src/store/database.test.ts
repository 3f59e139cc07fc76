import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { after, test } from "node:test";
import { sql } from "kysely";
import { testDatabase } from "../../test/support/database.ts";
import { eventually } from "../../test/support/eventually.ts";
import { silentLog } from "../kit/log.ts";
import { openDatabase, timestampText } from "./database.ts";

const { db, pool, connection, drop } = await testDatabase();
after(drop);

test("a timestamp comes out as RFC 3339 in UTC with milliseconds", async () => {
  const { rows } = await sql<{
    at: string;
  }>`select '2026-01-02 05:04:05.678901+02'::timestamptz as at, null::timestamptz as none`.execute(db);
  assert.deepEqual(rows, [{ at: "2026-01-02T03:04:05.678Z", none: null }]);
});

test("a timestamp without a fraction has milliseconds too", () => {
  assert.equal(timestampText("2026-01-02 03:04:05+00"), "2026-01-02T03:04:05.000Z");
});

test("a bigint is a number, and one that is too large is a fault", async () => {
  const { rows } = await sql<{ n: number }>`select 9007199254740991::bigint as n`.execute(db);
  assert.equal(rows[0]?.n, Number.MAX_SAFE_INTEGER);
  await assert.rejects(sql`select 9007199254740993::bigint as n`.execute(db), /too large/);
});

test("a server that compiles costly statements does not compile ours", async () => {
  const { rows } = await sql<{ jit: string }>`select current_setting('jit') as jit`.execute(db);
  assert.deepEqual(rows, [{ jit: "off" }]);
});

test("a connection that the server ends in the middle of a transaction fails that transaction alone", async () => {
  const broken = db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx);
    await pool.query("select pg_terminate_backend($1, 5000)", [rows[0]?.pid]);
    await sql`select 1`.execute(tx);
  });
  await assert.rejects(broken);
  const { rows } = await sql<{ one: number }>`select 1 as one`.execute(db);
  assert.equal(rows[0]?.one, 1);
});

test("two transactions that wait for each other both succeed: the one that PostgreSQL ends runs again", async () => {
  await sql`create table pair (id int primary key, changes int not null)`.execute(db);
  await sql`insert into pair values (1, 0), (2, 0)`.execute(db);
  const [started, runs] = [new Set<number>(), [0, 0]];
  const change = (which: 0 | 1) =>
    db.transaction().execute(async (tx) => {
      runs[which]! += 1;
      const ids = which === 0 ? [1, 2] : [2, 1];
      await sql`update pair set changes = changes + 1 where id = ${ids[0]}`.execute(tx);
      started.add(which);
      await eventually(async () => started.size === 2, "both have locked a row");
      await sql`update pair set changes = changes + 1 where id = ${ids[1]}`.execute(tx);
    });
  await Promise.all([change(0), change(1)]);
  assert.equal(runs[0]! + runs[1]!, 3);
  const { rows } = await sql<{ changes: number }>`select changes from pair`.execute(db);
  assert.deepEqual(rows, [{ changes: 2 }, { changes: 2 }]);
});

test("a connection that fails before its first statement is made once more", async () => {
  const { host = "", port = 5432 } = connection;
  let attempts = 0;
  const server = createServer((client) => {
    attempts += 1;
    if (attempts === 1) {
      client.destroy();
      return;
    }
    const upstream = host.startsWith("/") ? connect(`${host}/.s.PGSQL.${port}`) : connect(port, host);
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) socket.on("error", () => {});
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const at = { ...connection, host: "127.0.0.1", port: (server.address() as AddressInfo).port };
  const shaky = openDatabase({ connection: at, log: silentLog });
  try {
    const { rows } = await sql<{ one: number }>`select 1 as one`.execute(shaky.db);
    assert.deepEqual(rows, [{ one: 1 }]);
    assert.equal(attempts, 2);
  } finally {
    await shaky.close();
    server.close();
  }
});
