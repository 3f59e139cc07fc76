import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { until } from "../kit/until.ts";
import { sharedApi, testOrganization, testToken } from "../../test/support/test-platform.ts";
import { eventually, guardMs } from "../../test/support/eventually.ts";
import type { Authenticated } from "../features/tokens/tokens.ts";
import { silentLog } from "../kit/log.ts";
import { createAuthenticator } from "./authenticator.ts";
import { allWakeupsArrived } from "../../test/support/wakeups.ts";
import { wakeupsDouble } from "../../test/support/port-doubles.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme");

const statusOf = async (token: string) => (await api.call("GET", "/v1/me", { token })).status;

/** An authenticator with its own clock, wake-ups by hand, and a token whose look-ups are counted. */
function remembering(given: { expiresAtMs?: number } = {}) {
  const world = { nowMs: 1_000_000, isListening: true, lookUps: 0, wake: () => {} };
  const expires_at = given.expiresAtMs === undefined ? null : new Date(given.expiresAtMs).toISOString();
  const found = { caller: { token_id: "tok_1" }, expires_at, last_used_at: null } as unknown as Authenticated;
  const wakeups = wakeupsDouble({
    on: (_, listener) => {
      world.wake = () => listener("");
      return () => {};
    },
    isListening: () => world.isListening,
  });
  const find = async () => {
    world.lookUps += 1;
    return found;
  };
  const now = () => world.nowMs;
  const authenticator = createAuthenticator({ wakeups, log: silentLog, find, recordUse: async () => {}, now });
  return { world, ask: () => authenticator.authenticate("text") };
}

test("a wake-up empties the memory at once", async () => {
  const { world, ask } = remembering();
  await ask();
  await ask();
  assert.equal(world.lookUps, 1);
  world.wake();
  await ask();
  assert.equal(world.lookUps, 2);
});

test("what was being looked up when a wake-up arrived is not remembered", async () => {
  const { world, ask } = remembering();
  const asked = ask();
  world.wake();
  await asked;
  await ask();
  assert.equal(world.lookUps, 2);
});

test("while no wake-ups arrive a token is looked up again after one second", async () => {
  const { world, ask } = remembering();
  await ask();
  world.isListening = false;
  world.nowMs += 999;
  await ask();
  assert.equal(world.lookUps, 1);
  world.nowMs += 1;
  await ask();
  assert.equal(world.lookUps, 2);
});

test("a token expires while it is remembered", async () => {
  const { world, ask } = remembering({ expiresAtMs: 1_010_000 });
  assert.ok(await ask());
  world.nowMs = 1_010_000;
  assert.equal(await ask(), undefined);
  assert.equal(world.lookUps, 1);
});

test("a revoked token stops working", async () => {
  const { id, text } = await testToken(api.database.db, org.id, {});
  assert.equal(await statusOf(text), 200);
  assert.equal((await api.call("DELETE", `/v1/api-tokens/${id}`, { token: org.owner })).status, 204);
  assert.equal(await statusOf(text), 401);
});

test("a suspended organization's tokens stop working with the wake-up, and work again afterwards", async () => {
  const { db } = api.database;
  const other = await testOrganization(db, "other");
  assert.equal(await statusOf(other.owner), 200);
  const suspend = async (at: Date | null) => {
    await db.updateTable("organization").set({ suspended_at: at }).where("id", "=", other.id).execute();
    await api.platform.wakeups.send(db, "tokens");
    await allWakeupsArrived(api.platform);
  };
  await suspend(new Date());
  assert.equal(await statusOf(other.owner), 403);
  await suspend(null);
  assert.equal(await statusOf(other.owner), 200);
});

test("a change is seen although the connection that would have told of it broke", async () => {
  const { db } = api.database;
  const { id, text } = await testToken(db, org.id, {});
  assert.equal(await statusOf(text), 200);
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen berth' and datname = current_database()`.execute(
    db,
  );
  await db.updateTable("api_token").set({ revoked_at: new Date() }).where("id", "=", id).execute();
  await eventually(async () => (await statusOf(text)) === 401, "the token is refused");
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
