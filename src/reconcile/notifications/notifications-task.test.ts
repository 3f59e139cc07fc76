import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { sql } from "kysely";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { sendMessage } from "../../features/notifications/notifications.ts";
import { silentLog } from "../../kit/log.ts";
import type { Delivery, Message, Notifier } from "../../ports/notifier.ts";
import { openWakeups, type Wakeups } from "../../store/wakeups.ts";
import { createDriver } from "../driver.ts";
import type { Platform } from "../platform.ts";
import { notificationsTask } from "./notifications-task.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";

let database: TestDatabase;
let wakeups: Wakeups;

before(async () => {
  database = await testDatabase();
  wakeups = await openWakeups({ connection: database.connection, log: silentLog });
});
afterEach(() => database.db.deleteFrom("notification").execute());
after(async () => {
  await wakeups.close();
  await database.drop();
});

/** A channel with scripted answers, which then accepts everything. */
function scripted(name: string, script: (Delivery | Error)[] = []) {
  const delivered: Message[] = [];
  const notifier: Notifier = {
    name,
    async deliver(message) {
      delivered.push(message);
      const next = script.shift() ?? { outcome: "delivered" };
      if (next instanceof Error) throw next;
      return next;
    },
  };
  return { notifier, delivered };
}

function worldWith(notifiers: readonly Notifier[], owner = "boot/1/1"): Platform {
  const { db, vault } = database;
  return platformDouble({ db, vault, wakeups, owner, ports: { notifiers } });
}

async function send(platform: Platform, subject: string, lifeMs = 3_600_000): Promise<void> {
  const now = new Date();
  const expires_at = new Date(now.getTime() + lifeMs);
  const message = { org_id: null, kind: "alert", subject, text: "text", url: null, created_at: now, expires_at };
  await sendMessage(platform, platform.db, message);
}

/** Runs the task until it has no work left. */
async function runOnce(platform: Platform): Promise<void> {
  const task = notificationsTask(platform, () => {});
  await task.run(new AbortController().signal);
  await task.settle?.();
}

const rows = () => database.db.selectFrom("notification").selectAll().orderBy("id").execute();
const letTimePass = () =>
  database.db
    .updateTable("notification")
    .set({ next_attempt_at: sql`now()` })
    .execute();

test("a message goes to every channel, and nothing of it stays behind", async () => {
  const [one, two] = [scripted("one"), scripted("two")];
  const platform = worldWith([one.notifier, two.notifier]);
  await send(platform, "hello");
  await runOnce(platform);
  await runOnce(platform);
  for (const { delivered } of [one, two])
    assert.deepEqual(
      delivered.map(({ subject }) => subject),
      ["hello"],
    );
  for (const row of await rows()) assert.deepEqual([row.status, row.sealed_message], ["delivered", null]);
});

test("what was not taken is sent again, later and later, with the same id", async () => {
  const failed = { outcome: "failed", reason: "It is down." } as const;
  const channel = scripted("mail", [failed, failed, new Error("a fault")]);
  const platform = worldWith([channel.notifier]);
  await send(platform, "again");
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await runOnce(platform);
    const [row] = await rows();
    assert.equal(row?.status, "queued");
    pauses.push(Date.parse(row.next_attempt_at) - Date.now());
    await runOnce(platform);
    assert.equal(channel.delivered.length, attempt + 1, "not before its time");
    await letTimePass();
  }
  const [first = 0, second = 0, third = 0] = pauses;
  assert.ok(first < second && second < third, pauses.join());
  await runOnce(platform);
  assert.equal((await rows())[0]?.status, "delivered");
  assert.equal(new Set(channel.delivered.map(({ id }) => id)).size, 1);
});

test("two control planes deliver a message once", async () => {
  const channel = scripted("mail");
  const planes = ["boot/1/1", "boot/2/2"].map((owner) => worldWith([channel.notifier], owner));
  for (let i = 0; i < 10; i += 1) await send(planes[0] as Platform, `m${i}`);
  await Promise.all([...planes, ...planes, ...planes].map(runOnce));
  await Promise.all(planes.map(runOnce));
  assert.equal(channel.delivered.length, 10);
});

test("a message that nobody needs any more is given up, and its text erased", async () => {
  const channel = scripted("mail");
  const platform = worldWith([channel.notifier]);
  await send(platform, "late", -1000);
  await runOnce(platform);
  const [row] = await rows();
  assert.deepEqual([row?.status, row?.sealed_message, channel.delivered.length], ["given_up", null, 0]);
});

test("a message for a channel that is no longer configured waits and disturbs nobody", async () => {
  const [gone, here] = [scripted("gone"), scripted("here")];
  await send(worldWith([gone.notifier, here.notifier]), "both");
  await runOnce(worldWith([here.notifier]));
  assert.deepEqual([gone.delivered.length, here.delivered.length], [0, 1]);
});

test("it is sent as soon as it is written", async () => {
  const channel = scripted("mail");
  const platform = worldWith([channel.notifier]);
  const driver = createDriver({
    // The task's period is long, so that only the wake-up can send it.
    tasks: [{ ...notificationsTask(platform, () => driver.wake("notifications")), periodMs: 3_600_000 }],
    wakeups,
    log: silentLog,
  });
  await driver.start();
  await send(platform, "now");
  await eventually(() => channel.delivered.length > 0, "it is sent");
  await driver.stop();
  assert.equal(channel.delivered.length, 1);
});
