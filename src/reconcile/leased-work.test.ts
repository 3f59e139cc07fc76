import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { testDatabase, type TestDatabase } from "../../test/support/database.ts";
import { nothingInProgress } from "../../test/support/nothing-in-progress.ts";
import { insertNotifications, takeNotification } from "../features/notifications/queries.ts";
import { formatIdentity, ownIdentity } from "../kit/processes.ts";
import { silentLog } from "../kit/log.ts";
import { createLeasedTask } from "./leased-work.ts";

let database: TestDatabase;

before(async () => {
  database = await testDatabase();
});
after(() => database.drop());

test("a row whose worker is known to be dead is claimed at once, and the task adds to the report", async () => {
  const { db } = database;
  const own = ownIdentity();
  const dead = formatIdentity({ ...own, start_time: `${own.start_time}0` });
  const created_at = new Date();
  const expires_at = new Date(created_at.getTime() + 3_600_000);
  const message = { org_id: null, notifier: "one", kind: "alert", sealed_message: Buffer.from("sealed") };
  await insertNotifications(db, [{ ...message, id: "ntf_1", created_at, expires_at }]);
  await takeNotification(db, dead, ["one"], nothingInProgress);
  const steps: string[] = [];
  const owner = formatIdentity(own);
  const task = createLeasedTask({ db, log: silentLog, owner }, () => steps.push("wake"), {
    ...{ name: "messages", periodMs: 1000, topics: [], table: "notification", limit: 1 },
    take: (inProgress) => takeNotification(db, owner, ["one"], inProgress),
    async work(row) {
      steps.push(`work with fence ${row.fence}`);
    },
    async broken() {},
    async before() {
      const { rows } = await sql`select id from notification where lease_until > now()`.execute(db);
      steps.push(`before, ${rows.length} leased`);
    },
    async after(running) {
      steps.push(`after, ${running} under way`);
      return { againMs: 250 };
    },
  });
  const report = await task.run(new AbortController().signal);
  await task.settle?.();
  assert.deepEqual(report, { detail: "1 under way", againMs: 250 });
  assert.deepEqual(steps.toSorted(), ["after, 1 under way", "before, 0 leased", "wake", "work with fence 2"]);
});
