import assert from "node:assert/strict";
import { test } from "node:test";
import { testThings } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { newId } from "../../kit/ids.ts";
import { requestDailyBackup } from "./backups.ts";
import { dailyStates, lockDaily, newestCompleted } from "./queries.ts";

const api = await sharedApi();

test("a backup that was made while the clock was ahead counts neither as the day's nor as the newest", async () => {
  const { db } = api.database;
  const org = await testOrganization(db, "acme");
  const owner = { org_id: org.id, project_id: (await testThings(api.platform, org)).project.id };
  const insert = async (hoursAhead: number) => {
    const created_at = new Date(Date.now() + hoursAhead * 3_600_000);
    const row = { ...owner, id: newId("bak", created_at.getTime()), origin: "daily", status: "completed" } as const;
    await db
      .insertInto("backup")
      .values({ ...row, created_at })
      .execute();
    return row.id;
  };
  const look = async () => {
    const state = (await dailyStates(db, new Date())).find(({ project_id }) => project_id === owner.project_id);
    const locked = await db.transaction().execute((tx) => lockDaily(tx, { ...owner, content: "database" }, new Date()));
    const newest = await newestCompleted(db, owner.org_id, owner.project_id);
    return { last: state?.last_at, locked, newest: newest?.id };
  };
  const ahead = await insert(+100);
  assert.deepEqual(await look(), { last: null, locked: null, newest: ahead });
  const yesterday = await insert(-24);
  const { last, locked, newest } = await look();
  assert.equal(newest, yesterday);
  assert.ok(last !== null && last === locked);
});

test("a second request for a day's backup that does not know of the first makes none, even if the first has ended", async () => {
  const { db, wakeups } = api.platform;
  const org = await testOrganization(db, "daily");
  const owner = { org_id: org.id, project_id: (await testThings(api.platform, org)).project.id };
  const request = () =>
    db
      .transaction()
      .execute((tx) =>
        requestDailyBackup(tx, wakeups, { ...owner, content: "database", since: null, now: new Date() }),
      );
  assert.equal((await request()).outcome, "requested");
  await db.deleteFrom("backup_operation").where("project_id", "=", owner.project_id).execute();
  assert.equal((await request()).outcome, "busy");
});

test("a day's backup that finds another operation under way leaves no row", async () => {
  const { db, wakeups } = api.platform;
  const org = await testOrganization(db, "busy");
  const owner = { org_id: org.id, project_id: (await testThings(api.platform, org)).project.id };
  const wanted = { ...owner, since: null, now: new Date() };
  const request = (content: "database" | "files") =>
    db.transaction().execute((tx) => requestDailyBackup(tx, wakeups, { ...wanted, content }));
  assert.equal((await request("files")).outcome, "requested");
  assert.equal((await request("database")).outcome, "busy");
  const { org_id } = owner;
  const running = db
    .selectFrom("backup")
    .select("content")
    .where(({ and }) => and({ org_id, status: "running" }));
  assert.deepEqual(await running.execute(), [{ content: "files" }]);
});
