import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { sharedApi } from "../../../test/support/test-platform.ts";
import { nextRouteVersion, raiseRouteVersion } from "./routes.ts";

const api = await sharedApi();
const db = api.database.db;

const setVersion = (version: number) => sql`select setval('route_version', ${sql.lit(version)})`.execute(db);

async function presentMs(): Promise<number> {
  const { rows } = await sql<{ ms: number }>`
    select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms`.execute(db);
  return (rows[0] as { ms: number }).ms;
}

test("after a start, also on a database that was reset, versions are above all that were drawn before it", async () => {
  await setVersion(1);
  const before = await presentMs();
  await raiseRouteVersion(db);
  assert.ok((await nextRouteVersion(db)) > before);
});

test("a start never lets versions go back, whatever the clock says", async () => {
  const ahead = (await presentMs()) + 3_600_000;
  await setVersion(ahead);
  await raiseRouteVersion(db);
  assert.equal(await nextRouteVersion(db), ahead + 1);
});
