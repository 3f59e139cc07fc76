import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { until } from "../kit/until.ts";
import {
  testApi,
  testOrganization,
  testToken,
  type TestApi,
  type TestOrganization,
} from "../../test/support/test-platform.ts";
import { guardMs } from "../../test/support/eventually.ts";

let api: TestApi;
let org: TestOrganization;

before(async () => {
  api = await testApi();
  org = await testOrganization(api.database.db, "acme");
});
after(() => api.close());

const statusOf = async (token: string) => (await api.call("GET", "/v1/me", { token })).status;
/** The platform promises one second; without a wake-up a token is remembered for a minute. Between them is room for a busy machine. */
const becomes = (token: string, status: number) =>
  until(async () => ((await statusOf(token)) === status ? true : undefined), { timeoutMs: 30_000 });

test("a revoked token stops working", async () => {
  const { id, text } = await testToken(api.database.db, org.id, {});
  assert.equal(await statusOf(text), 200);
  assert.equal((await api.call("DELETE", `/v1/api-tokens/${id}`, { token: org.owner })).status, 204);
  assert.equal(await statusOf(text), 401);
});

/** A token about to expire that was used once; on a busy machine a short-lived one has expired before that. */
async function rememberedToken(lifeMs: number): Promise<string> {
  const { text } = await testToken(api.database.db, org.id, { expires_at: new Date(Date.now() + lifeMs) });
  return (await statusOf(text)) === 200 ? text : rememberedToken(lifeMs * 2);
}

test("a token expires while it is remembered", async () => {
  const text = await rememberedToken(1000);
  assert.ok(await becomes(text, 401));
});

test("a suspended organization's tokens stop working, and work again afterwards", async () => {
  const { db } = api.database;
  const other = await testOrganization(db, "other");
  assert.equal(await statusOf(other.owner), 200);
  const suspend = async (at: Date | null) => {
    await db.updateTable("organization").set({ suspended_at: at }).where("id", "=", other.id).execute();
    await api.platform.wakeups.send(db, "tokens");
  };
  await suspend(new Date());
  assert.ok(await becomes(other.owner, 403));
  await suspend(null);
  assert.ok(await becomes(other.owner, 200));
});

test("a change is seen although the connection that would have told of it broke", async () => {
  const { db } = api.database;
  const { id, text } = await testToken(db, org.id, {});
  assert.equal(await statusOf(text), 200);
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen berth' and datname = current_database()`.execute(
    db,
  );
  await db.updateTable("api_token").set({ revoked_at: new Date() }).where("id", "=", id).execute();
  assert.ok(await becomes(text, 401));
});

test("the use of a token is noted", async () => {
  const { db } = api.database;
  const { id, text } = await testToken(db, org.id, {});
  await statusOf(text);
  const used = await until(
    async () =>
      (await db.selectFrom("api_token").select("last_used_at").where("id", "=", id).executeTakeFirstOrThrow())
        .last_used_at ?? undefined,
    { timeoutMs: guardMs },
  );
  assert.ok(used);
  await sleep(20);
  await statusOf(text);
  const again = await db.selectFrom("api_token").select("last_used_at").where("id", "=", id).executeTakeFirstOrThrow();
  assert.equal(again.last_used_at, used);
});

test("texts that only look like tokens are refused", async () => {
  for (const text of [
    "x",
    "berth_o_",
    org.owner.slice(0, -1),
    `${org.owner}x`,
    org.owner.toUpperCase(),
    org.owner.replace("berth_o_", "berth_a_"),
  ]) {
    assert.equal(await statusOf(text), 401);
  }
});
