import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { softAuthenticator } from "../../../test/support/authenticator.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { testProject } from "../../../test/support/fixtures.ts";
import type { Delivery, Notifier } from "../../ports/notifier.ts";
import { sharedApi, testOrganization, testToken, type TestOrganization } from "../../../test/support/test-platform.ts";

const mails: { to: string; text: string }[] = [];
let delivery: Delivery = { outcome: "failed", reason: "The server refuses it." };
const mailTo = (to: string): Notifier => ({
  name: "mail",
  async deliver({ text }) {
    if (delivery.outcome === "delivered") mails.push({ to, text });
    return delivery;
  },
});
const api = await sharedApi({ ports: { mailTo } });
const { db } = api.database;
const origin = "https://berth.test";
const site = api.platform.addresses as { controlUrl: string };
site.controlUrl = origin;

const ownPage = { origin, "x-berth-dashboard": "1", "user-agent": "Browser 1.0" };
type Answer = Awaited<ReturnType<typeof api.call>>;
const ask = (path: string, body: object, headers: Record<string, string> = {}) =>
  api.call("POST", `/session/${path}`, { headers: { ...ownPage, ...headers }, body });
const cookieOf = ({ headers }: Answer) => ({ cookie: (headers.get("set-cookie") ?? "").split(";")[0] ?? "" });
const tokenOf = ({ body }: Answer) => String(body["token"]);

type Options = { challenge: string; rp: { id: string }; rpId: string };
type Authenticator = ReturnType<typeof softAuthenticator>;

async function invite(org: TestOrganization, body: object = {}, token = org.owner): Promise<string> {
  const made = await api.call("POST", "/v1/invites", { token, body });
  assert.equal(made.status, 201, made.text);
  return String(made.body["url"]).split("/join#")[1] as string;
}

/** Joins as a new person; returns the answer of the last step. */
async function join(code: string, name: string, device: Authenticator, deviation = {}): Promise<Answer> {
  const first = await ask("join", { code, name });
  if (first.status !== 200) return first;
  const passkey = device.create(first.body["options"] as Options, deviation);
  return ask("join", { code, name, passkey });
}

async function signIn(device: Authenticator, deviation = {}): Promise<Answer> {
  const { body } = await ask("passkey", {});
  return ask("passkey", { passkey: device.get(body["options"] as Options, deviation) });
}

/** Makes a person of the organization, and returns how they act. */
async function person(org: TestOrganization, name: string, rights: object = {}) {
  const device = softAuthenticator(origin);
  const joined = await join(await invite(org, rights), name, device);
  assert.equal(joined.status, 200, joined.text);
  const token = tokenOf(joined);
  const { members } = (await api.call("GET", "/v1/members", { token: org.owner })).body as {
    members: { id: string; name: string }[];
  };
  return { device, token, joined, id: members.find((each) => each.name === name)?.id as string };
}

const statusOf = async (token: string, path = "/v1/me") => (await api.call("GET", path, { token })).status;
const codeOf = ({ status, body }: Answer) => [status, body["code"]];
let orgs = 0;
const newOrg = () => testOrganization(db, `people-${(orgs += 1)}`);

test("a person joins by a link, once, and acts under their own name", async () => {
  const org = await newOrg();
  const code = await invite(org, { email: "ada@example.com" });
  const listed = await api.call("GET", "/v1/invites", { token: org.owner });
  assert.ok(!listed.text.includes(code));
  const shown = await ask("invitation", { code });
  assert.deepEqual(
    [shown.body["organization"], shown.body["role"], shown.body["present"], shown.body["passkeys_unavailable"]],
    [org.slug, "member", null, null],
  );
  const joined = await join(code, "Ada", softAuthenticator(origin));
  assert.equal(joined.status, 200, joined.text);
  const token = tokenOf(joined);
  const me = (await api.call("GET", "/v1/me", { token })).body;
  assert.deepEqual([me["role"], (me["person"] as { name: string }).name], ["member", "Ada"]);
  const created = await api.call("POST", "/v1/projects", { token, body: { slug: "hers", name: "hers" } });
  assert.equal(created.status, 201, created.text);
  const { activity } = (await api.call("GET", "/v1/activity", { token: org.owner })).body as {
    activity: { action: string; actor: { name: string } }[];
  };
  const actors = Object.fromEntries(activity.map(({ action, actor }) => [action, actor.name]));
  assert.deepEqual([actors["member.joined"], actors["project.created"]], ["Ada", "Ada"]);
  for (const again of [await join(code, "Eve", softAuthenticator(origin)), await ask("invitation", { code })])
    assert.deepEqual(codeOf(again), [401, "unauthorized"]);
});

test("an invitation is mailed to its address alone, at most twenty a day; otherwise its link is shown, with the reason", async () => {
  const org = await newOrg();
  const ask = (body: object) => api.call("POST", "/v1/invites", { token: org.owner, body });
  const email = "ada@example.com";
  const failed = await ask({ email });
  assert.match(String(failed.body["url"]), /\/join#/);
  assert.equal(failed.body["mail_problem"], "The server refuses it.");
  delivery = { outcome: "delivered" };
  const sent = await ask({ email });
  assert.deepEqual([sent.status, sent.body["url"], sent.body["mail_problem"]], [201, null, null]);
  const [mail] = mails;
  assert.equal(mail?.to, email);
  const code = /\/join#(\S+)/.exec(mail.text)?.[1] ?? "";
  assert.ok(!sent.text.includes(code));
  assert.equal((await join(code, "Ada", softAuthenticator(origin))).status, 200);
  assert.match(String((await ask({})).body["url"]), /\/join#/, "without an address there is no mail");
  for (let more = 0; more < 18; more += 1) assert.equal((await ask({ email })).body["url"], null);
  const late = await ask({ email });
  delivery = { outcome: "failed", reason: "The server refuses it." };
  assert.match(String(late.body["mail_problem"]), /20 invitations within a day/);
  assert.match(String(late.body["url"]), /\/join#/);
  assert.equal(mails.length, 19);
});

test("of twenty people with one link, one joins", async () => {
  const org = await newOrg();
  const code = await invite(org);
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, index) => join(code, `Person ${index}`, softAuthenticator(origin))),
  );
  assert.equal(all.filter(({ status }) => status === 200).length, 1);
  const { members } = (await api.call("GET", "/v1/members", { token: org.owner })).body as { members: unknown[] };
  assert.equal(members.length, 1);
});

test("an invitation ends when it expires, is revoked, its sender loses the right, or the organization is suspended", async () => {
  const org = await newOrg();
  const refused = async (code: string) =>
    assert.deepEqual(codeOf(await ask("invitation", { code })), [401, "unauthorized"]);
  const expired = await invite(org);
  await db
    .updateTable("invite")
    .set({ expires_at: new Date(0) })
    .where("org_id", "=", org.id)
    .execute();
  await refused(expired);
  const revoked = await invite(org);
  const { invites } = (await api.call("GET", "/v1/invites", { token: org.owner })).body as {
    invites: { id: string }[];
  };
  assert.equal((await api.call("DELETE", `/v1/invites/${invites[0]?.id}`, { token: org.owner })).status, 204);
  await refused(revoked);
  const sender = await testToken(db, org.id, { role: "owner" });
  const orphaned = await invite(org, {}, sender.text);
  await db.updateTable("api_token").set({ role: "member" }).where("id", "=", sender.id).execute();
  await refused(orphaned);
  const late = await invite(org);
  await db.updateTable("organization").set({ suspended_at: new Date() }).where("id", "=", org.id).execute();
  await refused(late);
});

test("nobody invites above themselves", async () => {
  const org = await newOrg();
  const asks = async (body: object) => (await api.call("POST", "/v1/invites", { token: org.owner, body })).status;
  assert.equal(await asks({ role: "owner", platform_admin: true }), 403);
  assert.equal(await asks({ role: "owner", projects: ["none"] }), 400);
  assert.equal(await asks({ projects: ["none"] }), 400);
});

test("a passkey signs in, and each sign-in is a session of its own", async () => {
  const org = await newOrg();
  // They name nobody, so nobody learns who has an account.
  const { options } = (await ask("passkey", { name: "Ada", email: "ada@example.com" })).body;
  assert.deepEqual(Object.keys(options as object).toSorted(), ["challenge", "rpId", "timeout", "userVerification"]);
  const { device, token } = await person(org, "Ada");
  const [one, two] = [await signIn(device), await signIn(device)];
  assert.deepEqual([one.status, two.status], [200, 200], one.text);
  assert.equal(new Set([token, tokenOf(one), tokenOf(two)]).size, 3);
  for (const each of [token, tokenOf(one), tokenOf(two)]) assert.equal(await statusOf(each), 200);
});

test("what the sign-in page asks a browser for names nobody, whoever a stranger says to be", async () => {
  const ada = await person(await newOrg(), "Ada");
  const asked = async (body: object) => {
    const { challenge, ...rest } = (await ask("passkey", body)).body["options"] as Record<string, unknown>;
    return { ...rest, hasChallenge: typeof challenge === "string" };
  };
  const plain = await asked({});
  assert.ok(plain.hasChallenge && !("allowCredentials" in plain));
  for (const given of [{ name: "Ada" }, { id: ada.id }, { name: "Nobody" }])
    assert.deepEqual(await asked(given), plain);
});

test("an answer from another page, without verification, for another purpose, used before or with an older counter is refused", async () => {
  const org = await newOrg();
  const { device } = await person(org, "Ada");
  const unauthorized = (answer: Answer) => assert.deepEqual(codeOf(answer), [401, "unauthorized"], answer.text);
  unauthorized(await signIn(device, { origin: "https://shop.berth.test" }));
  unauthorized(await signIn(device, { verified: false }));
  const { body } = await ask("passkey", {});
  const passkey = device.get(body["options"] as Options);
  assert.equal((await ask("passkey", { passkey })).status, 200);
  unauthorized(await ask("passkey", { passkey }));
  const joining = await ask("join", { code: await invite(org), name: "Eve" });
  const { challenge } = joining.body["options"] as Options;
  unauthorized(await ask("passkey", { passkey: device.get({ challenge, rpId: "berth.test" }) }));
  const challengeUntil = (until: number) =>
    api.platform.vault.seal("passkey", "sign-in", JSON.stringify({ until, random: "x" })).toString("base64url");
  const answered = (until: number) =>
    ask("passkey", { passkey: device.get({ challenge: challengeUntil(until), rpId: "berth.test" }) });
  unauthorized(await answered(Date.now() - 1));
  assert.equal((await answered(Date.now() + 60_000)).status, 200);
  device.rewind();
  unauthorized(await signIn(device));
  unauthorized(await signIn(softAuthenticator(origin)));
  for (const nonsense of [1, {}, { id: device.id }, "x".repeat(1000)])
    unauthorized(await ask("passkey", { passkey: nonsense }));
});

test("a passkey is registered only from this page, with verification, for its own invitation, and belongs to one account", async () => {
  const org = await newOrg();
  const [code, other] = [await invite(org), await invite(org)];
  const device = softAuthenticator(origin);
  assert.equal((await join(code, "Ada", device, { origin: "https://shop.berth.test" })).status, 401);
  assert.equal((await join(code, "Ada", device, { verified: false })).status, 401);
  const { body } = await ask("join", { code: other, name: "Ada" });
  const passkey = device.create(body["options"] as Options);
  assert.equal((await ask("join", { code, name: "Ada", passkey })).status, 401);
  assert.equal((await join(code, "Ada", device)).status, 200);
  assert.deepEqual(codeOf(await join(other, "Eve", device)), [409, "conflict"]);
  assert.equal((await join(other, "Eve", softAuthenticator(origin))).status, 200);
});

test("a passkey's id and a provider's name that no database takes are as unknown as any other", async () => {
  assert.deepEqual(codeOf(await ask("passkey", { passkey: { id: "\0" } })), [401, "unauthorized"]);
  assert.deepEqual(codeOf(await ask("oidc/%00", { to: "sign-in" })), [404, "not_found"]);
});

test("where browsers offer no passkeys, the page says why, and a person joins without one", async () => {
  const org = await newOrg();
  try {
    for (const [url, reason] of [
      ["https://203.0.113.7", /IP address/],
      ["http://berth.test", /plain HTTP/],
    ] as const) {
      site.controlUrl = url;
      const headers = { origin: url };
      assert.match(String((await ask("passkey", {}, headers)).body["unavailable"]), reason);
      const joined = await ask("join", { code: await invite(org), name: "Ada" }, headers);
      assert.equal(await statusOf(tokenOf(joined)), 200);
    }
    site.controlUrl = "http://localhost:4000";
    assert.ok((await ask("passkey", {}, { origin: site.controlUrl })).body["options"]);
  } finally {
    site.controlUrl = origin;
  }
});

test("signing out ends the session within a second, in one browser or everywhere", async () => {
  const org = await newOrg();
  const { device, token, joined } = await person(org, "Ada");
  const second = tokenOf(await signIn(device));
  const third = await signIn(device);
  const resumed = await api.call("POST", "/session/resume", { headers: { ...ownPage, ...cookieOf(joined) } });
  assert.equal(tokenOf(resumed), token);
  assert.equal((await api.call("GET", "/v1/me", { headers: cookieOf(joined) })).status, 401);
  const left = await api.call("DELETE", "/session", { headers: { ...ownPage, ...cookieOf(joined) } });
  assert.equal(left.status, 204);
  assert.deepEqual([await statusOf(token), await statusOf(second)], [401, 200]);
  const { sessions } = (await api.call("GET", "/v1/me/sessions", { token: second })).body as {
    sessions: { user_agent: string }[];
  };
  assert.deepEqual(
    sessions.map(({ user_agent }) => user_agent),
    ["Browser 1.0", "Browser 1.0"],
  );
  assert.equal((await api.call("POST", "/v1/me/sessions/end", { token: second })).status, 204);
  assert.deepEqual([await statusOf(second), await statusOf(tokenOf(third))], [401, 401]);
  assert.equal((await api.call("POST", "/v1/me/sessions/end", { token: org.owner })).status, 409);
});

test("a session ends after seven days without use and thirty days in all; opening the dashboard extends it", async () => {
  const org = await newOrg();
  const { joined, token } = await person(org, "Ada");
  const age = async (days: number, last = 0) =>
    db
      .updateTable("session")
      .set({
        created_at: new Date(Date.now() - days * 86_400_000),
        expires_at: new Date(Date.now() + (7 - last) * 86_400_000),
      })
      .execute();
  const resume = () => api.call("POST", "/session/resume", { headers: { ...ownPage, ...cookieOf(joined) } });
  const left = async () => {
    const { expires_at } = await db
      .selectFrom("session")
      .select("expires_at")
      .orderBy("id", "desc")
      .executeTakeFirstOrThrow();
    return Math.round((Date.parse(expires_at) - Date.now()) / 86_400_000);
  };
  await age(10, 6);
  await resume();
  assert.equal(await left(), 7);
  await age(29, 6);
  await resume();
  assert.equal(await left(), 1);
  await age(29, 8);
  await api.platform.wakeups.send(db, "tokens");
  assert.equal(await statusOf(token), 401);
});

test("a removed person's sessions, tokens and keys end; a demoted one's keep at most what is left", async () => {
  const org = await newOrg();
  const project = await testProject(api.platform, org);
  const ada = await person(org, "Ada", { role: "owner" });
  const made = await api.call("POST", "/v1/api-tokens", {
    token: ada.token,
    body: { name: "laptop", role: "owner", approval_mode: false },
  });
  const laptop = tokenOf(made);
  const nested = tokenOf(
    await api.call("POST", "/v1/api-tokens", { token: laptop, body: { name: "script", role: "owner" } }),
  );
  const narrowed = { role: "member", projects: [project.slug] };
  const changed = await api.call("PATCH", `/v1/members/${ada.id}`, { token: org.owner, body: narrowed });
  assert.deepEqual([changed.status, changed.body["projects"]], [200, [project.slug]], changed.text);
  for (const token of [ada.token, laptop, nested]) {
    const me = (await api.call("GET", "/v1/me", { token })).body as { role: string; token: { scopes: string[] } };
    assert.deepEqual([me.role, me.token.scopes.includes("webhooks:write")], ["member", false]);
    assert.deepEqual(codeOf(await api.call("POST", "/v1/projects", { token, body: {} })), [403, "unlimited_only"]);
    assert.equal(await statusOf(token, `/v1/projects/${project.slug}`), 200);
  }
  // Rights that come back are the person's; what was given to programs stays as little as it has become.
  await api.call("PATCH", `/v1/members/${ada.id}`, { token: org.owner, body: { role: "owner" } });
  const roleOf = async (token: string) => (await api.call("GET", "/v1/me", { token })).body["role"];
  const roles = await Promise.all([ada.token, laptop, nested].map(roleOf));
  assert.deepEqual(roles, ["owner", "member", "member"]);
  assert.equal((await api.call("DELETE", `/v1/members/${ada.id}`, { token: org.owner })).status, 204);
  for (const token of [ada.token, laptop, nested]) assert.equal(await statusOf(token), 401);
  assert.deepEqual(codeOf(await signIn(ada.device)), [401, "unauthorized"]);
});

test("the last owner is neither removed nor demoted; a person with a passkey counts as one", async () => {
  const org = await newOrg();
  const ada = await person(org, "Ada", { role: "owner" });
  const { id } = (await api.call("GET", "/v1/me", { token: org.owner })).body["token"] as { id: string };
  await db
    .updateTable("api_token")
    .set({ revoked_at: new Date() })
    .where("org_id", "=", org.id)
    .where("kind", "=", "token")
    .where("id", "<>", id)
    .execute();
  assert.equal((await api.call("DELETE", `/v1/api-tokens/${id}`, { token: org.owner })).status, 204);
  const change = (method: string, body?: object) =>
    api.call(method, `/v1/members/${ada.id}`, { token: ada.token, ...(body && { body }) });
  assert.deepEqual(codeOf(await change("DELETE")), [409, "last_owner_token"]);
  assert.deepEqual(codeOf(await change("PATCH", { role: "member" })), [409, "last_owner_token"]);
  assert.equal(await statusOf(ada.token), 200);
});

test("a person joins a second organization without another passkey, and switches between their own alone", async () => {
  const [home, other, foreign] = [await newOrg(), await newOrg(), await newOrg()];
  const ada = await person(home, "Ada");
  const code = await invite(other, { role: "owner" });
  const cookie = cookieOf(ada.joined);
  assert.equal((await ask("invitation", { code }, cookie)).body["present"], "Ada");
  const joined = await ask("join", { code }, cookie);
  const orgOf = async (token: string) =>
    ((await api.call("GET", "/v1/me", { token })).body["organization"] as { slug: string }).slug;
  assert.equal(await orgOf(tokenOf(joined)), other.slug);
  assert.deepEqual(codeOf(await ask("join", { code: await invite(other) }, cookieOf(joined))), [409, "conflict"]);
  const back = await ask("organization", { organization: home.slug }, cookieOf(joined));
  assert.equal(await orgOf(tokenOf(back)), home.slug);
  assert.equal(await statusOf(tokenOf(joined)), 401);
  assert.equal((await ask("organization", { organization: foreign.slug }, cookieOf(back))).status, 404);
});

test("another page neither signs in nor joins, and a membership is no token", async () => {
  const org = await newOrg();
  const ada = await person(org, "Ada");
  for (const path of ["passkey", "invitation", "join", "organization"])
    assert.equal((await ask(path, {}, { origin: "https://evil.test" })).status, 403, path);
  const listed = await api.call("GET", "/v1/api-tokens", { token: org.owner });
  assert.ok(!listed.text.includes(ada.id));
  assert.equal((await api.call("DELETE", `/v1/api-tokens/${ada.id}`, { token: org.owner })).status, 404);
});

test("a token with few scopes gives no person more than it has", async () => {
  const org = await newOrg();
  const few = await testToken(db, org.id, { role: "owner", scopes: ["tokens:read", "tokens:write"] });
  const ada = await person(org, "Ada");
  for (const role of ["owner", "member"]) {
    const asked = await api.call("POST", "/v1/invites", { token: few.text, body: { role } });
    assert.deepEqual(codeOf(asked), [403, "forbidden"], asked.text);
    assert.match(String(asked.body["error"]), /lacks the scope/);
  }
  const raised = await api.call("PATCH", `/v1/members/${ada.id}`, { token: few.text, body: { role: "owner" } });
  assert.deepEqual(codeOf(raised), [403, "forbidden"], raised.text);
  assert.equal((await api.call("DELETE", `/v1/members/${ada.id}`, { token: few.text })).status, 204);
});

/** Sends a request, lets it wait for the organization's people, and changes a membership or token before it goes on. */
async function whileWaiting(org: TestOrganization, send: () => Promise<Answer>, id: string, change: object) {
  const { sent } = await db.transaction().execute(async (tx) => {
    await tx.selectFrom("organization").select("id").where("id", "=", org.id).forNoKeyUpdate().execute();
    const waiting = sql`select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    const answer = send();
    await eventually(async () => (await waiting.execute(db)).rows.length > 0, "the request waits");
    await tx.updateTable("api_token").set(change).where("id", "=", id).execute();
    return { sent: answer };
  });
  return sent;
}

test("an invitation whose sender loses the right while it is being used is not used", async () => {
  const org = await newOrg();
  const sender = await testToken(db, org.id, { role: "owner" });
  const code = await invite(org, {}, sender.text);
  const { body } = await ask("join", { code, name: "Eve" });
  const passkey = softAuthenticator(origin).create(body["options"] as Options);
  const join = () => ask("join", { code, name: "Eve", passkey });
  const answer = await whileWaiting(org, join, sender.id, { revoked_at: new Date() });
  assert.deepEqual(codeOf(answer), [401, "unauthorized"]);
});

const field = (bytes: Buffer) => Buffer.concat([Buffer.from([0, 0, 0, bytes.length]), bytes]);
const ed25519 = Buffer.concat([field(Buffer.from("ssh-ed25519")), field(Buffer.alloc(32, 7))]);

test("who loses their rights while a request waits gives none away with it", async () => {
  const org = await newOrg();
  const other = await person(org, "Mallory");
  const requests = [
    ["POST", "/v1/api-tokens", { name: "kept", role: "owner" }],
    ["POST", "/v1/invites", { role: "owner" }],
    ["POST", "/v1/ssh-keys", { name: "kept", public_key: `ssh-ed25519 ${ed25519.toString("base64")}` }],
    ["PATCH", `/v1/members/${other.id}`, { role: "owner" }],
    ["DELETE", `/v1/members/${other.id}`, undefined],
  ] as const;
  for (const [method, path, body] of requests) {
    const losing = await testToken(db, org.id, { role: "owner" });
    const send = () => api.call(method, path, { token: losing.text, body });
    const demoted = await whileWaiting(org, send, losing.id, { role: "member" });
    assert.deepEqual(codeOf(demoted), [503, "unavailable"], path);
    const ended = await testToken(db, org.id, { role: "owner" });
    const sendAgain = () => api.call(method, path, { token: ended.text, body });
    const removed = await whileWaiting(org, sendAgain, ended.id, { revoked_at: new Date() });
    assert.deepEqual(codeOf(removed), [401, "unauthorized"], path);
  }
  for (const path of ["/v1/api-tokens", "/v1/ssh-keys"])
    assert.ok(!(await api.call("GET", path, { token: org.owner })).text.includes('"kept"'));
});

test("switching between organizations does not make a session live longer", async () => {
  const home = await newOrg();
  const ada = await person(home, "Ada");
  const began = new Date(Date.now() - 29 * 86_400_000);
  await db.updateTable("session").set({ created_at: began }).execute();
  const back = await ask("organization", { organization: home.slug }, cookieOf(ada.joined));
  assert.equal(back.status, 200, back.text);
  const joined = await ask("join", { code: await invite(await newOrg()) }, cookieOf(back));
  assert.equal(joined.status, 200, joined.text);
  const { created_at, expires_at } = await db
    .selectFrom("session")
    .select(["created_at", "expires_at"])
    .orderBy("id", "desc")
    .executeTakeFirstOrThrow();
  assert.deepEqual(
    [Date.parse(created_at), Date.parse(expires_at)],
    [began.getTime(), began.getTime() + 30 * 86_400_000],
  );
});
