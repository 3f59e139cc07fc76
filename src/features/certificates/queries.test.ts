import assert from "node:assert/strict";
import { after, test } from "node:test";
import { testDatabase } from "../../../test/support/database.ts";
import { accountOf, deleteAccount, insertAccount, saveAccountUrl, saveStep, syncWanted } from "./queries.ts";

const { db, drop } = await testDatabase();
after(drop);

const wanted = [{ hostname: "shop.test", zone: "shop.test", challenge: "http-01", org_id: null }] as const;
const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
const rows = () => db.selectFrom("certificate").select(["id", "wanted"]).execute();
const change = (values: { not_after?: Date; ordered_at?: Date }) => db.updateTable("certificate").set(values).execute();

test("a name that is no longer wanted keeps its certificate until it has expired, so that it may come back", async () => {
  await syncWanted(db, wanted);
  const [first] = await rows();
  assert.ok(first);
  await change({ not_after: hoursAgo(-1), ordered_at: hoursAgo(24) });
  await syncWanted(db, []);
  assert.deepEqual(await rows(), [{ id: first.id, wanted: false }]);
  await syncWanted(db, wanted);
  assert.deepEqual(await rows(), [first]);
  await change({ not_after: hoursAgo(1) });
  await syncWanted(db, []);
  assert.deepEqual(await rows(), []);
});

test("an order of the last three hours counts on after its name was detached", async () => {
  await syncWanted(db, wanted);
  await change({ ordered_at: hoursAgo(2) });
  await syncWanted(db, []);
  assert.equal((await rows()).length, 1);
  await change({ ordered_at: hoursAgo(4) });
  await syncWanted(db, []);
  assert.deepEqual(await rows(), []);
});

test("an account that was registered meanwhile outlives the deletion of the one before", async () => {
  const directory = "https://ca.test/directory";
  await insertAccount(db, directory, Buffer.from("key"));
  await saveAccountUrl(db, directory, "https://ca.test/new");
  for (const before of [null, "https://ca.test/old"]) await deleteAccount(db, directory, before);
  assert.equal((await accountOf(db, directory))?.url, "https://ca.test/new");
  await deleteAccount(db, directory, "https://ca.test/new");
  assert.equal(await accountOf(db, directory), undefined);
});

test("a step is recorded for the order that has the lease alone", async () => {
  await syncWanted(db, [...wanted, { ...wanted[0], hostname: "other.test", zone: "other.test" }]);
  const all = () =>
    db.selectFrom("certificate").select(["id", "hostname", "fence", "detail"]).orderBy("hostname").execute();
  const [, shop] = await all();
  assert.ok(shop);
  const lease = { table: "certificate", id: shop.id, owner: "here" } as const;
  for (const [fence, detail] of [
    [shop.fence - 1, "lost"],
    [shop.fence, "held"],
  ] as const)
    await saveStep(db, { ...lease, fence }, detail);
  assert.deepEqual(
    (await all()).map(({ hostname, detail }) => [hostname, detail]),
    [
      ["other.test", "No attempt was made yet."],
      ["shop.test", "held"],
    ],
  );
});
