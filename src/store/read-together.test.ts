import assert from "node:assert/strict";
import { after, test } from "node:test";
import { sql } from "kysely";
import { testDatabase } from "../../test/support/database.ts";
import { readTogether } from "./read-together.ts";

const { db, drop } = await testDatabase();
after(drop);

await sql`create sequence runs`.execute(db);
await sql`create table line (of_org text, body text)`.execute(db);
await sql`insert into line values ('one', 'before')`.execute(db);
const text = `select l.body, nextval('runs') as run, pg_sleep(0.1)::text from line l where l.of_org = $1`;
type Line = { readonly body: string; readonly run: number };
const read = async (org: string, on: Parameters<typeof readTogether>[0] = db) =>
  (await readTogether<Line>(on, text, [org]))[0];

test("a crowd that asks for the same costs two statements, and nobody gets rows from before its call", async () => {
  const first = read("one");
  const crowd = Array.from({ length: 50 }, () => read("one"));
  await sql`update line set body = 'after'`.execute(db);
  const late = read("one");
  const runs = new Set([await first, ...(await Promise.all(crowd))].map((line) => line?.run));
  assert.ok(runs.size <= 2, `${runs.size} statements ran`);
  assert.equal((await late)?.body, "after");
});

test("who asks for another value, or within a transaction, gets rows of its own", async () => {
  await sql`insert into line values ('two', 'theirs')`.execute(db);
  const [one, two] = await Promise.all([read("one"), read("two")]);
  assert.deepEqual([one?.body, two?.body], ["after", "theirs"]);
  await db.transaction().execute(async (tx) => {
    const beside = read("one");
    await sql`update line set body = 'mine' where of_org = 'one'`.execute(tx);
    assert.equal((await read("one", tx))?.body, "mine");
    assert.equal((await beside)?.body, "after");
    assert.equal((await read("one"))?.body, "after");
  });
});

test("a statement that fails does so for those who share it, and the next one runs", async () => {
  const failing = () => readTogether(db, "select 1 / $1::integer as n, pg_sleep(0.05)", [0]);
  const outcomes = await Promise.allSettled([failing(), failing(), failing()]);
  assert.deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(["rejected"]));
  assert.equal((await read("one"))?.body, "mine");
});

test("nobody waits long for a statement that hangs", async () => {
  await sql`create sequence stalls`.execute(db);
  const stalling = async (name: string) => {
    await readTogether(db, "select case when nextval('stalls') = 1 then pg_sleep($1::integer) end::text", [4]);
    return name;
  };
  const hangs = stalling("the one that hangs");
  assert.equal(await Promise.race([hangs, stalling("who asked meanwhile")]), "who asked meanwhile");
  assert.equal(await Promise.race([hangs, stalling("who asked later")]), "who asked later");
  await hangs;
});
