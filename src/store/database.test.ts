import assert from "node:assert/strict";
import { after, test } from "node:test";
import { sql } from "kysely";
import { testDatabase } from "../../test/support/database.ts";
import { timestampText } from "./database.ts";

const { db, pool, drop } = await testDatabase();
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
