import assert from "node:assert/strict";
import { after, test } from "node:test";
import { testDatabase } from "../../test/support/database.ts";
import { renewLease, requireLease, type Lease } from "./leases.ts";

const { db, drop } = await testDatabase();
after(drop);

const lease: Lease = { table: "certificate", id: "crt_1", owner: "here", fence: 1 };
const ended = new Date(0).toISOString();
await db.insertInto("certificate").values({ id: lease.id, hostname: "shop.test", challenge: "http-01" }).execute();

/** Gives the row to this owner, with a lease that has run out, and returns whether `lease` can be renewed. */
async function isRenewed(owner: string, fence: number): Promise<boolean> {
  const held = { lease_owner: owner, fence, lease_until: ended };
  await db.updateTable("certificate").set(held).execute();
  const renewed = await renewLease(db, lease);
  const { lease_until } = await db.selectFrom("certificate").select("lease_until").executeTakeFirstOrThrow();
  assert.equal(Date.parse(lease_until ?? "") > Date.now(), renewed);
  return renewed;
}

test("a lease that has run out is renewed only as long as no other claim was made, also by the same owner", async () => {
  assert.deepEqual(
    [await isRenewed("here", 1), await isRenewed("there", 1), await isRenewed("here", 2)],
    [true, false, false],
  );
  await assert.rejects(requireLease(db, lease), /the lease was lost/);
});
