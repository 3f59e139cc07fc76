import assert from "node:assert/strict";
import { test } from "node:test";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken, type TestOrganization } from "../../../test/support/test-platform.ts";
import { limits } from "../../contract/limits.ts";
import { newId } from "../../kit/ids.ts";
import { sealedOf } from "./queries.ts";
import { codeOf, openWebhook } from "./webhooks.ts";

// These tests send nothing.
const mailTo = () => ({ name: "mail", deliver: () => Promise.reject(new Error("the test sent a mail")) });
const api = await sharedApi({ ports: { mailTo } });

let count = 0;
const organization = () => testOrganization(api.database.db, `hooks-${(count += 1)}`);

async function add({ owner }: TestOrganization, more: Record<string, unknown> = {}) {
  const body = { name: "chat", url: "https://chat.test/t0ken?key=s3cret", events: ["deployment"], ...more };
  return api.call("POST", "/v1/webhooks", { token: owner, body });
}

async function deliveries(org: TestOrganization, id: unknown) {
  const { body } = await api.call("GET", `/v1/webhooks/${String(id)}/deliveries`, { token: org.owner });
  return body["deliveries"] as { event: string; status: string; data: Record<string, unknown> }[];
}

/** A deployment that is starting, and a function that ends it. */
async function starting(org: TestOrganization) {
  const { id: project_id, slug } = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id };
  const build_id = await testBuild(api.platform, owner, { status: "running" });
  const id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "starting" });
  return { id, build_id, slug };
}

test("the secret and the whole address are shown once and never again", async () => {
  const org = await organization();
  const made = await add(org);
  assert.equal(made.status, 201, made.text);
  assert.match(String(made.body["secret"]), /^whsec_/);
  assert.equal(made.body["url"], "https://chat.test/…");
  const listed = await api.call("GET", "/v1/webhooks", { token: org.owner });
  for (const part of ["whsec_", "s3cret", "t0ken"]) assert.ok(!listed.text.includes(part), part);
  const activity = await api.call("GET", "/v1/activity", { token: org.owner });
  assert.match(activity.text, /Webhook \\"chat\\" added/);
  for (const part of ["whsec_", "s3cret", "t0ken"]) assert.ok(!activity.text.includes(part), part);
});

test("an address must be one of the web, without a password", async () => {
  const org = await organization();
  for (const url of [
    "ftp://chat.test/",
    "chat.test",
    "https://user:word@chat.test/",
    "https://chat.test/#x",
    "file:///etc",
  ])
    assert.equal((await add(org, { url })).status, 400, url);
  assert.equal((await add(org, { events: [] })).status, 400);
  assert.equal((await add(org, { events: ["everything"] })).status, 400);
});

test("a token in approval mode takes nothing from a webhook without a human: no event, no address, no delivery", async () => {
  const org = await organization();
  const { text: token } = await testToken(api.database.db, org.id, { role: "owner", approval_mode: true });
  const path = `/v1/webhooks/${String((await add(org, { events: ["alert", "approval"] })).body["id"])}`;
  const change = (body: object) => api.call("PATCH", path, { token, body });
  for (const kept of [{ name: "chat room" }, { events: ["approval", "alert", "deployment"] }, { enabled: true }, {}])
    assert.equal((await change(kept)).status, 200, JSON.stringify(kept));
  const url = "https://elsewhere.test/";
  for (const loss of [
    { events: ["alert", "deployment"] },
    { enabled: false },
    { url },
    { format: "slack", name: "x" },
  ]) {
    const refused = await change(loss);
    assert.deepEqual([refused.status, refused.body["code"]], [403, "approval_required"], JSON.stringify(loss));
    const dry = await api.call("PATCH", `${path}?dry_run=true`, { token, body: loss });
    assert.equal(dry.body["needs_approval"], true);
  }
  const { body } = await api.call("GET", "/v1/webhooks", { token: org.owner });
  const [row] = body["webhooks"] as { name: string; enabled: boolean; events: string[] }[];
  assert.deepEqual(
    [row?.name, row?.enabled, row?.events.toSorted()],
    ["chat room", true, ["alert", "approval", "deployment"]],
  );
  const owned = await api.call("PATCH", path, { token: org.owner, body: { url: "https://elsewhere.test/" } });
  assert.equal(owned.status, 200, owned.text);
});

test("an organization has a limited number of webhooks, also when they are added at once", async () => {
  const org = await organization();
  const most = limits.webhooks_per_organization;
  const made = await Promise.all(Array.from({ length: most + 3 }, () => add(org)));
  assert.equal(made.filter(({ status }) => status === 201).length, most);
  const refused = made.find(({ status }) => status === 409);
  assert.match(refused?.text ?? "", /at most 10 webhooks/);
});

test("an event is queued by the transaction that makes it happen, and not by one that is undone", async () => {
  const org = await organization();
  const { body } = await add(org, { events: ["deployment", "build"] });
  const { id, build_id, slug } = await starting(org);
  const fail = { status: "failed", failure: JSON.stringify({ summary: "It crashed.", log_tail: ["s3cret"] }) } as const;
  const { db } = api.database;
  await db
    .transaction()
    .execute(async (tx) => {
      await tx.updateTable("deployment").set(fail).where("id", "=", id).execute();
      throw new Error("undone");
    })
    .catch(() => {});
  assert.deepEqual(await deliveries(org, body["id"]), []);
  await db.updateTable("deployment").set(fail).where("id", "=", id).execute();
  await db.updateTable("build").set({ status: "succeeded" }).where("id", "=", build_id).execute();
  const [build, deployment] = await deliveries(org, body["id"]);
  assert.deepEqual([build?.event, deployment?.event], ["build.succeeded", "deployment.failed"]);
  assert.equal(deployment?.data["project"], slug);
  assert.equal(deployment?.data["summary"], "It crashed.");
  assert.ok(!JSON.stringify(deployment).includes("s3cret"), "no lines of a log leave the platform");
});

test("backups, certificates, approvals and alerts are events of the organization that they belong to", async () => {
  const [org, other] = [await organization(), await organization()];
  const events = ["backup", "certificate", "approval", "alert"];
  const [own, foreign] = [await add(org, { events }), await add(other, { events })];
  const { db } = api.database;
  const { id: project_id, slug } = await testProject(api.platform, org);
  const of = { org_id: org.id, project_id };
  const backup = newId("bak");
  await db
    .insertInto("backup")
    .values({ ...of, id: backup, origin: "manual", status: "running" })
    .execute();
  await db.updateTable("backup").set({ status: "failed", problem: "No room." }).where("id", "=", backup).execute();
  const hostname = `${slug}.example`;
  const domain = { ...of, id: newId("dom"), hostname, zone: hostname, dns_detail: "", next_check_at: new Date() };
  await db.insertInto("domain").values(domain).execute();
  await db
    .insertInto("certificate")
    .values({ id: newId("crt"), hostname, challenge: "http-01" })
    .execute();
  await db
    .updateTable("certificate")
    .set({ status: "failed", detail: "No." })
    .where("hostname", "=", hostname)
    .execute();
  const soon = new Date(Date.now() + 60_000);
  const token = await testToken(db, org.id, {});
  const asked = { route: "projects.delete", method: "DELETE", path: "/v1/projects/x", resource: "x", request: "{}" };
  const hashes = { fingerprint: Buffer.alloc(32, count), link_hash: Buffer.from(newId("apr")) };
  const waiting = { ...asked, ...hashes, id: newId("apr"), org_id: org.id, token_id: token.id, token_name: "agent" };
  await db
    .insertInto("approval")
    .values({ ...waiting, expires_at: soon })
    .execute();
  const alert = {
    id: newId("alt"),
    machine: "",
    severity: "warning",
    summary: "It crashes.",
    opened_at: new Date(),
  } as const;
  const subjects = [`${org.slug}/${slug}`, hostname, "", "disk"];
  for (const subject of subjects)
    await db
      .insertInto("alert")
      .values({ ...alert, id: newId("alt"), name: "applications", subject, notify_at: new Date() })
      .execute();
  const seen = (await deliveries(org, own.body["id"])).map(({ event }) => event).toSorted();
  assert.deepEqual(seen, ["alert.opened", "alert.opened", "approval.pending", "backup.failed", "certificate.failed"]);
  assert.deepEqual(await deliveries(other, foreign.body["id"]), []);
});

test("a webhook has a limited number of events in an hour; the first one over it stays as a dropped one", async () => {
  const org = await organization();
  const { body } = await add(org);
  const { db } = api.database;
  const id = String(body["id"]);
  await db.updateTable("webhook").set({ hourly_limit: 2 }).where("id", "=", id).execute();
  for (let each = 0; each < 5; each += 1) {
    const { id: deployment } = await starting(org);
    await db.updateTable("deployment").set({ status: "failed" }).where("id", "=", deployment).execute();
  }
  const statuses = (await deliveries(org, id)).map(({ status }) => status);
  assert.deepEqual(statuses, ["dropped", "queued", "queued"]);
});

test("a webhook that is off queues nothing and loses what waits; a test is sent nevertheless", async () => {
  const org = await organization();
  const { body } = await add(org);
  const path = `/v1/webhooks/${String(body["id"])}`;
  const { db } = api.database;
  const [first, second] = [await starting(org), await starting(org)];
  await db.updateTable("deployment").set({ status: "failed" }).where("id", "=", first.id).execute();
  const off = await api.call("PATCH", path, { token: org.owner, body: { enabled: false } });
  assert.deepEqual([off.status, off.body["enabled"], off.body["disabled_reason"]], [200, false, null]);
  await db.updateTable("deployment").set({ status: "failed" }).where("id", "=", second.id).execute();
  assert.equal((await api.call("POST", `${path}/test`, { token: org.owner })).status, 201);
  const seen = (await deliveries(org, body["id"])).map(({ event, status }) => [event, status]);
  assert.deepEqual(seen, [
    ["webhook.test", "queued"],
    ["deployment.failed", "failed"],
  ]);
});

const mail = { url: "mailto:ops@mail.test", format: "email" };

/** Returns the code that the mailbox of a webhook's address received. */
async function codeIn(id: unknown) {
  const sealed = await sealedOf(api.database.db, String(id));
  return codeOf(openWebhook(api.platform.vault, String(id), sealed));
}

/** An e-mail webhook of a new organization. */
async function mailWebhook() {
  const org = await organization();
  const made = await add(org, mail);
  assert.equal(made.status, 201, made.text);
  const path = `/v1/webhooks/${String(made.body["id"])}`;
  const change = (body: unknown) => api.call("PATCH", path, { token: org.owner, body });
  const retry = () => api.call("POST", `${path}/test`, { token: org.owner });
  const fail = async () => {
    const { id } = await starting(org);
    await api.database.db.updateTable("deployment").set({ status: "failed" }).where("id", "=", id).execute();
  };
  const events = async () => (await deliveries(org, made.body["id"])).map(({ event }) => event);
  return { org, id: made.body["id"], made: made.body, change, retry, fail, events };
}

test("an e-mail address gets nothing but its code until the code is given back", async () => {
  const { id, made, change, retry, fail, events } = await mailWebhook();
  assert.deepEqual(
    [made["url"], made["enabled"], made["confirmed"], made["secret"]],
    ["mailto:ops@mail.test", false, false, null],
  );
  await fail();
  assert.equal((await change({ enabled: true })).status, 409);
  assert.equal((await change({ code: "000000-000000" })).status, 400);
  assert.equal((await retry()).body["event"], "webhook.confirmation");
  assert.deepEqual(await events(), ["webhook.confirmation", "webhook.confirmation"]);
  const confirmed = await change({ code: ` ${(await codeIn(id)).toUpperCase()} ` });
  assert.deepEqual([confirmed.body["confirmed"], confirmed.body["enabled"]], [true, true], confirmed.text);
  await fail();
  assert.equal((await events())[0], "deployment.failed");
});

test("another e-mail address must be confirmed by a code of its own", async () => {
  const { org, id, change, fail, events } = await mailWebhook();
  const first = await codeIn(id);
  await change({ code: first });
  const changed = await change({ url: "mailto:other@mail.test" });
  assert.deepEqual([changed.body["confirmed"], changed.body["enabled"]], [false, false], changed.text);
  await fail();
  assert.deepEqual(await events(), ["webhook.confirmation", "webhook.confirmation"]);
  assert.equal((await change({ code: first })).status, 400);
  const listed = await api.call("GET", "/v1/webhooks", { token: org.owner });
  assert.ok(!listed.text.includes(await codeIn(id)), "only the mailbox knows the code");
});

test("an organization has few mails with a code in a day, also when it removes the webhooks, and few mails in an hour", async () => {
  const org = await organization();
  const statuses: number[] = [];
  for (let each = 0; each <= limits.webhook_codes_per_day; each += 1) {
    const { status, body } = await add(org, mail);
    statuses.push(status);
    if (status === 201) await api.call("DELETE", `/v1/webhooks/${String(body["id"])}`, { token: org.owner });
  }
  assert.deepEqual(statuses.slice(-2), [201, 429]);
  assert.equal((await add(await organization(), mail)).status, 201, "others have their own");
  const row = await api.database.db
    .selectFrom("webhook")
    .select("hourly_limit")
    .where("format", "=", "email")
    .execute();
  assert.ok(row.every(({ hourly_limit }) => hourly_limit === limits.webhook_mails_per_hour));
});

test("one plain e-mail address is taken, and only as the form that mails", async () => {
  const org = await organization();
  for (const url of [
    "mailto:a@mail.test,b@mail.test",
    "mailto:a@mail.test?bcc=b@mail.test",
    "mailto:%61@mail.test",
    'mailto:"a b"@mail.test',
    "mailto:a@localhost",
    "mailto:a@mail.test\r\nBcc: b@mail.test",
    "https://mail.test/",
  ])
    assert.equal((await add(org, { ...mail, url })).status, 400, url);
  assert.equal((await add(org, { url: mail.url, format: "slack" })).status, 400);
  const { body } = await add(org);
  const changed = await api.call("PATCH", `/v1/webhooks/${String(body["id"])}`, { token: org.owner, body: mail });
  assert.equal(changed.status, 409, changed.text);
});
