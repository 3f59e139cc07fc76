import assert from "node:assert/strict";
import { eventually } from "../../../test/support/eventually.ts";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { testOrganization } from "../../../test/support/test-platform.ts";
import { mailServer } from "../../../test/support/mail-server.ts";
import { platformDouble } from "../../../test/support/platform-double.ts";
import { createSmtpNotifier } from "../../adapters/notifier-smtp/smtp-notifier.ts";
import { codeOf, givenUpWebhooks, sealSecret, sealUrl } from "../../features/webhooks/webhooks.ts";
import { newId } from "../../kit/ids.ts";
import { silentLog } from "../../kit/log.ts";
import { newWebhookSecret, webhookHeaders } from "../../kit/standard-webhooks.ts";
import type { OutgoingOutcome, OutgoingRequest } from "../../ports/outgoing-http.ts";
import type { MailTo } from "../../ports/notifier.ts";
import type { Vault } from "../../store/vault.ts";
import { openWakeups, type Wakeups } from "../../store/wakeups.ts";
import { evaluateWebhooks } from "../monitors/evaluate-projects.ts";
import { webhooksTask } from "./webhooks-task.ts";

let database: TestDatabase;
let wakeups: Wakeups;
let vault: Vault;

before(async () => {
  database = await testDatabase();
  wakeups = await openWakeups({ connection: database.connection, log: silentLog });
  ({ vault } = database);
});
after(async () => {
  await wakeups.close();
  await database.drop();
});

type Answer = (request: OutgoingRequest, signal: AbortSignal) => Promise<OutgoingOutcome>;
const taken: OutgoingOutcome = { outcome: "answered", status: 204, excerpt: "" };
const down: OutgoingOutcome = { outcome: "answered", status: 500, excerpt: "Oh no." };

/** A control plane whose calls get the test's answers. */
function planeWith(answer: Answer, owner = "boot/1/1", mailTo: MailTo = null) {
  const sent: OutgoingRequest[] = [];
  const outgoingHttp = {
    send: (request: OutgoingRequest, signal: AbortSignal) => {
      sent.push(request);
      return answer(request, signal);
    },
  };
  const parts = { db: database.db, vault, wakeups, owner, ports: { outgoingHttp, mailTo } };
  const task = webhooksTask(platformDouble(parts), () => {});
  const runOnce = async () => {
    const report = await task.run(new AbortController().signal);
    await task.settle?.();
    return report;
  };
  return { task, sent, runOnce };
}

let count = 0;

/** A webhook of a new organization, with waiting events. */
async function webhookWith(events: number, of?: { readonly id: string; readonly slug: string }) {
  const org = of ?? (await testOrganization(database.db, `sender-${(count += 1)}`));
  const id = newId("whk");
  const secret = newWebhookSecret();
  const url = `https://${id.slice(-8)}.test/hook`;
  const sealed = { ...sealUrl(vault, id, url), sealed_secret: sealSecret(vault, id, secret) };
  const row = { id, org_id: org.id, name: "chat", format: "json", hourly_limit: 600 } as const;
  await database.db
    .insertInto("webhook")
    .values({ ...row, ...sealed, events: ["deployment"] })
    .execute();
  for (let each = 0; each < events; each += 1)
    await database.db
      .insertInto("webhook_delivery")
      .values({ org_id: org.id, webhook_id: id, event: "deployment.failed", data: JSON.stringify({ each }) })
      .execute();
  return { id, org, secret, url };
}

const rowsOf = (id: string) =>
  database.db.selectFrom("webhook_delivery").selectAll().where("webhook_id", "=", id).orderBy("id").execute();
const webhookOf = (id: string) =>
  database.db.selectFrom("webhook").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
const letTimePass = (id: string) =>
  database.db
    .updateTable("webhook_delivery")
    .set({ next_attempt_at: sql`now()` })
    .where("webhook_id", "=", id)
    .execute();
const stopAll = () => database.db.deleteFrom("webhook_delivery").execute();

test("an event is sent signed, and its attempt is kept", async () => {
  const { id, secret, url } = await webhookWith(1);
  const plane = planeWith(async () => taken);
  await plane.runOnce();
  const [request] = plane.sent;
  const [row] = await rowsOf(id);
  assert.deepEqual([request?.url, row?.status], [url, "delivered"]);
  const timestamp = Number(request?.headers["webhook-timestamp"]);
  const headers = webhookHeaders(secret, { id: row?.id ?? "", timestamp, body: request?.body ?? "" });
  for (const [name, value] of Object.entries(headers)) assert.equal(request?.headers[name], value);
  const [attempt] = (row?.attempts ?? []) as unknown as { http_status: number; reason: string | null }[];
  assert.deepEqual([attempt?.http_status, attempt?.reason], [204, null]);
});

test("what was not taken is sent again with the same id, and counts as delivered once it arrives", async () => {
  const { id } = await webhookWith(1);
  const script = [down, down, taken];
  const plane = planeWith(async () => script.shift() ?? taken);
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await plane.runOnce();
    await plane.runOnce();
    assert.equal(plane.sent.length, attempt + 1, "not before its time");
    await letTimePass(id);
  }
  assert.equal(new Set(plane.sent.map(({ headers }) => headers["webhook-id"])).size, 1);
  const [row] = await rowsOf(id);
  assert.deepEqual([row?.status, ((row?.attempts ?? []) as unknown as unknown[]).length], ["delivered", 3]);
  assert.equal((await webhookOf(id)).failing_since, null);
});

test("a failed event is sent again after 5 s, and the other events of its webhook wait for 15 s", async () => {
  const { id } = await webhookWith(2);
  await planeWith(async () => down).runOnce();
  const rows = await rowsOf(id);
  const [failed, other] = rows.toSorted((a, b) => Number(b.fence) - Number(a.fence));
  assert.equal(Date.parse(String(other?.next_attempt_at)) - Date.parse(String(failed?.next_attempt_at)), 10_000);
  await stopAll();
});

test("an event that nobody takes is given up after its last attempt", async () => {
  const { id } = await webhookWith(1);
  const plane = planeWith(async () => ({ outcome: "failed", reason: "The receiver refused the connection." }));
  for (let attempt = 0; attempt < 12; attempt += 1) {
    await plane.runOnce();
    await letTimePass(id);
  }
  const [row] = await rowsOf(id);
  assert.deepEqual([row?.status, plane.sent.length], ["failed", 8]);
});

test("while a receiver hangs, the events of all others are sent, and of its own none at the same time", async () => {
  const [slow, quick] = [await webhookWith(3), await webhookWith(3)];
  let release: (outcome: OutgoingOutcome) => void = () => {};
  const hanging = new Promise<OutgoingOutcome>((resolve) => (release = resolve));
  const plane = planeWith((request) => (request.url === slow.url ? hanging : Promise.resolve(taken)));
  const isDone = async () => (await rowsOf(quick.id)).every(({ status }) => status === "delivered");
  const runUntilDone = () => plane.task.run(new AbortController().signal).then(isDone);
  await eventually(runUntilDone, "the quick receiver has all its events");
  assert.equal(plane.sent.filter(({ url }) => url === slow.url).length, 1);
  release(taken);
  await plane.task.settle?.();
  await stopAll();
});

test("an organization whose receivers all hang has a few places, and leaves the rest to the others", async () => {
  const org = await testOrganization(database.db, `sender-${(count += 1)}`);
  const hooks = await Promise.all(Array.from({ length: 8 }, () => webhookWith(1, org)));
  const urls = hooks.map(({ url }) => url);
  let release: (outcome: OutgoingOutcome) => void = () => {};
  const hanging = new Promise<OutgoingOutcome>((resolve) => (release = resolve));
  const plane = planeWith(() => hanging);
  await plane.task.run(new AbortController().signal);
  await plane.task.run(new AbortController().signal);
  assert.equal(plane.sent.filter(({ url }) => urls.includes(url)).length, 4);
  release(taken);
  await plane.task.settle?.();
  await stopAll();
});

test("the other events of a failing webhook wait, and all are due once one arrives", async () => {
  const { id } = await webhookWith(3);
  const script = [down];
  const plane = planeWith(async () => script.shift() ?? taken);
  await plane.runOnce();
  await plane.runOnce();
  assert.equal(plane.sent.length, 1);
  await database.db
    .updateTable("webhook_delivery")
    .set({ next_attempt_at: sql`now()` })
    .where("id", "=", (await rowsOf(id))[0]?.id ?? "")
    .execute();
  for (let round = 0; round < 3; round += 1) await plane.runOnce();
  assert.deepEqual(
    (await rowsOf(id)).map(({ status }) => status),
    ["delivered", "delivered", "delivered"],
  );
});

test("two control planes send an event once", async () => {
  const hooks = await Promise.all(Array.from({ length: 6 }, () => webhookWith(1)));
  const planes = ["boot/1/1", "boot/2/2"].map((owner) => planeWith(async () => taken, owner));
  await Promise.all([...planes, ...planes].map(({ runOnce }) => runOnce()));
  const urls = hooks.map(({ url }) => url);
  const sent = planes.flatMap((plane) => plane.sent.map(({ url }) => url)).filter((url) => urls.includes(url));
  assert.deepEqual(sent.toSorted(), urls.toSorted());
});

test("after days of failures, or an answer that it is gone, a webhook is switched off and there is an alert", async () => {
  const [old, gone, young] = [await webhookWith(2), await webhookWith(1), await webhookWith(1)];
  await database.db
    .updateTable("webhook")
    .set({ failing_since: sql`now() - interval '73 hours'`, failures: 9 })
    .where("id", "=", old.id)
    .execute();
  const plane = planeWith(async ({ url }) =>
    url === gone.url ? { outcome: "answered", status: 410, excerpt: "" } : down,
  );
  await plane.runOnce();
  for (const { id } of [old, gone]) {
    assert.notEqual((await webhookOf(id)).disabled_at, null);
    assert.ok((await rowsOf(id)).every(({ status }) => status === "failed"));
  }
  assert.equal((await webhookOf(young.id)).disabled_at, null);
  const subjects = evaluateWebhooks(await givenUpWebhooks(database.db)).map(({ subject }) => subject);
  for (const { id, org } of [old, gone]) assert.ok(subjects.includes(`${org.slug}/${id}`));
  const activity = await database.db.selectFrom("activity").selectAll().where("org_id", "=", old.org.id).execute();
  assert.deepEqual(
    activity.map(({ action }) => action),
    ["webhook.disabled"],
  );
  await stopAll();
});

test("a test that fails is not repeated and says nothing about the webhook's events", async () => {
  const { id, org } = await webhookWith(0);
  const value = { org_id: org.id, webhook_id: id, event: "webhook.test", data: "{}" };
  await database.db.insertInto("webhook_delivery").values(value).execute();
  const plane = planeWith(async () => down);
  await plane.runOnce();
  assert.deepEqual([(await rowsOf(id))[0]?.status, (await webhookOf(id)).failing_since], ["failed", null]);
});

test("the events of a suspended organization wait, without waking the task, until it is enabled", async () => {
  await stopAll();
  const { id, org } = await webhookWith(1);
  const suspend = (at: ReturnType<typeof sql<string>> | null) =>
    database.db.updateTable("organization").set({ suspended_at: at }).where("id", "=", org.id).execute();
  const plane = planeWith(async () => taken);
  await suspend(sql<string>`now()`);
  assert.equal((await plane.runOnce()).againMs, undefined);
  assert.deepEqual([plane.sent.length, (await rowsOf(id))[0]?.status], [0, "queued"]);
  await suspend(null);
  await plane.runOnce();
  assert.equal((await rowsOf(id))[0]?.status, "delivered");
});

test("an e-mail webhook's code and events are mailed; what the mail server refuses is tried again with the same id", async () => {
  const server = await mailServer();
  const { id, secret } = await webhookWith(0);
  const url = "mailto:ops@mail.test";
  const { db } = database;
  await db
    .updateTable("webhook")
    .set({ ...sealUrl(vault, id, url), format: "email", confirmed: false, disabled_at: sql`now()` })
    .where("id", "=", id)
    .execute();
  const { org_id } = await webhookOf(id);
  const queue = (event: string, data: object) =>
    db
      .insertInto("webhook_delivery")
      .values({ org_id, webhook_id: id, event, data: JSON.stringify(data) })
      .execute();
  const people = { url: server.url, from: "berth@mail.test" };
  const plane = planeWith(
    async () => down,
    "boot/1/1",
    (address) => createSmtpNotifier({ ...people, to: [address] }),
  );
  await queue("webhook.confirmation", {});
  await plane.runOnce();
  assert.deepEqual(server.receivers, ["ops@mail.test"]);
  assert.ok(server.mails[0]?.text.includes(codeOf({ url, secret })));
  assert.ok(
    !server.mails[0]?.text.includes("chat"),
    "no text that a tenant chose goes to an address that is not confirmed",
  );

  await db.updateTable("webhook").set({ confirmed: true, disabled_at: null }).where("id", "=", id).execute();
  await queue("deployment.failed", {
    project: "shop",
    deployment: 7,
    commit: "c0ffee00",
    summary: "Line 1\nBcc: x@y.test",
  });
  server.state.refuses = true;
  await plane.runOnce();
  server.state.refuses = false;
  await letTimePass(id);
  await plane.runOnce();
  const [, event] = await rowsOf(id);
  const attempts = (event?.attempts ?? []) as unknown as { reason: string | null; http_status: null }[];
  assert.deepEqual([event?.status, attempts.length, attempts[1]?.reason], ["delivered", 2, null]);
  assert.match(attempts[0]?.reason ?? "", /answered 550/);
  assert.equal(server.mails.length, 2);
  assert.equal(server.mails[1]?.subject, "[Berth] shop: deployment 7 (c0ffee00) failed. Line 1 Bcc: x@y.test");
  assert.match(server.mails[1]?.text ?? "", /berth webhooks off "chat"/);
  assert.equal(server.mails[1]?.messageId, `<${event?.id}@berth>`);
  assert.deepEqual(new Set(server.receivers), new Set(["ops@mail.test"]));
  await server.close();
});
