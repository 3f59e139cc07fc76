import assert from "node:assert/strict";
import { test } from "node:test";
import { scopes } from "../../contract/access.ts";
import { softAuthenticator } from "../../../test/support/authenticator.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { sharedApi, testOrganization, type TestOrganization } from "../../../test/support/test-platform.ts";

const api = await sharedApi();
const { db } = api.database;
const origin = "https://berth.test";
(api.platform.addresses as { controlUrl: string }).controlUrl = origin;

type Answer = Awaited<ReturnType<typeof api.call>>;
const ownPage = { origin, "x-berth-dashboard": "1", "user-agent": "Browser 1.0" };
const post = (path: string, body: object, cookie = "") =>
  api.call("POST", path === "" ? "/session" : `/session/${path}`, { headers: { ...ownPage, cookie }, body });
const cookieOf = ({ headers }: Answer) => (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
const codeOf = ({ status, body }: Answer) => [status, body["code"]];

/** Makes a person of the organization, with a passkey. */
async function person(org: TestOrganization, name: string, rights: object = {}) {
  const made = await api.call("POST", "/v1/invites", { token: org.owner, body: rights });
  const code = String(made.body["url"]).split("/join#")[1];
  const device = softAuthenticator(origin);
  const { body } = await post("join", { code, name });
  const joined = await post("join", { code, name, passkey: device.create(body["options"] as never) });
  assert.equal(joined.status, 200, joined.text);
  const { accounts } = (await api.call("GET", "/v1/platform/people", { token: org.operator })).body as {
    accounts: { id: string; name: string }[];
  };
  const id = accounts.find((each) => each.name === name)?.id as string;
  const change = (verb: string, token = org.operator) =>
    api.call("POST", `/v1/platform/people/${id}/${verb}`, { token });
  const signIn = async () => {
    const { options } = (await post("passkey", {})).body;
    return post("passkey", { passkey: device.get(options as never) });
  };
  return { id, token: String(joined.body["token"]), cookie: cookieOf(joined), change, signIn };
}

const statusOf = async (token: string) => (await api.call("GET", "/v1/me", { token })).status;

test("a disabled person's sessions, tokens, keys and invitations end, and no way in works until they are enabled", async () => {
  const org = await testOrganization(db, "disabled");
  const ada = await person(org, "Ada", { role: "owner" });
  const { token, signIn, change } = ada;
  const own = (await api.call("POST", "/v1/api-tokens", { token, body: { name: "hers" } })).body["token"];
  const public_key = `ssh-ed25519 ${Buffer.concat([
    Buffer.from([0, 0, 0, 11]),
    Buffer.from("ssh-ed25519"),
    Buffer.from([0, 0, 0, 32]),
    Buffer.alloc(32, 7),
  ]).toString("base64")}`;
  const key = await api.call("POST", "/v1/ssh-keys", { token, body: { name: "hers", public_key } });
  assert.equal(key.status, 201, key.text);
  const invited = await api.call("POST", "/v1/invites", { token, body: {} });
  assert.deepEqual(codeOf(await change("disable", org.owner)), [403, "operator_only"]);
  assert.equal((await change("disable")).body["can_sign_in"], false);
  await eventually(async () => (await statusOf(token)) === 401, "the session ended");
  assert.equal(await statusOf(String(own)), 401);
  const { ssh_keys: keys } = (await api.call("GET", "/v1/ssh-keys", { token: org.owner })).body;
  assert.deepEqual(keys, []);
  const code = String(invited.body["url"]).split("/join#")[1];
  assert.equal((await post("invitation", { code })).status, 401);
  const refused = await signIn();
  assert.deepEqual([refused.status, /disabled/.test(refused.text)], [401, true]);
  assert.deepEqual(codeOf(await change("link")), [409, "conflict"]);
  assert.deepEqual(codeOf(await change("disable")), [409, "conflict"]);
  assert.equal((await change("enable")).status, 200);
  assert.equal((await signIn()).status, 200);
  assert.equal(await statusOf(String(own)), 401);
});

test("the last owner of an organization is not disabled, and a disabled owner counts as none", async () => {
  const org = await testOrganization(db, "last");
  const [one, two] = [await person(org, "One", { role: "owner" }), await person(org, "Two", { role: "owner" })];
  const { operator } = await testOrganization(db, "other");
  await db
    .updateTable("api_token")
    .set({ revoked_at: new Date() })
    .where(({ and }) => and({ org_id: org.id, kind: "token" }))
    .execute();
  assert.equal((await one.change("disable", operator)).status, 200);
  assert.deepEqual(codeOf(await two.change("disable", operator)), [409, "last_owner_token"]);
  const { activity } = (await api.call("GET", "/v1/activity", { token: two.token })).body as {
    activity: { summary: string; actor: { name: string } }[];
  };
  assert.deepEqual(
    [activity[0]?.summary, activity[0]?.actor.name],
    ["The operator disabled One", "The platform's operator"],
  );
});

test("the operator's link signs a person in once, after a question, and lets them add a passkey", async () => {
  const org = await testOrganization(db, "link");
  const lost = await person(org, "Lost");
  const made = await lost.change("link");
  assert.equal(made.status, 201, made.text);
  const code = String(made.body["url"]).split("/sign-in#")[1];
  assert.deepEqual((await post("", { code })).body["question"], { person: "Lost", present: null });
  const entered = await post("", { code, agreed: true });
  assert.equal(entered.status, 200, entered.text);
  assert.equal((await post("", { code, agreed: true })).status, 401);
  assert.equal((await post("", { code: `${code}x`, agreed: true })).status, 401);
  const cookie = cookieOf(entered);
  const { options } = (await post("add-passkey", { name: "New" }, cookie)).body;
  const passkey = softAuthenticator(origin).create(options as never);
  assert.equal((await post("add-passkey", { name: "New", passkey }, cookie)).status, 200);
  // The link proves nothing else.
  const invited = await api.call("POST", "/v1/invites", { token: String(entered.body["token"]), body: {} });
  assert.equal(invited.body["code"], "owner_only");
});

test("a person's session that is not fresh neither invites, changes people nor makes tokens and keys; a token needs no proof", async () => {
  const org = await testOrganization(db, "stale");
  const { token } = await person(org, "Owner", { role: "owner" });
  const { members } = (await api.call("GET", "/v1/members", { token })).body as { members: { id: string }[] };
  await db
    .updateTable("session")
    .set({ fresh_at: new Date(Date.now() - 11 * 60_000) })
    .execute();
  await api.platform.wakeups.send(db, "tokens");
  const requests = [
    ["POST", "/v1/invites", {}],
    ["PATCH", `/v1/members/${members[0]?.id}`, { role: "member" }],
    ["DELETE", `/v1/members/${members[0]?.id}`, undefined],
    ["POST", "/v1/api-tokens", { name: "hers" }],
    ["POST", "/v1/ssh-keys", { name: "hers", public_key: "ssh-ed25519 AAAA" }],
  ] as const;
  await eventually(
    async () => (await api.call("DELETE", "/v1/members/none", { token })).status === 403,
    "the session is stale",
  );
  for (const [method, path, body] of requests)
    assert.deepEqual(codeOf(await api.call(method, path, { token, body })), [403, "fresh_sign_in_required"]);
  assert.equal((await api.call("POST", "/v1/invites", { token: org.owner, body: {} })).status, 201);
  assert.equal((await api.call("POST", "/v1/api-tokens", { token: org.owner, body: { name: "ci" } })).status, 201);
});

test("an administrator's session that is not fresh makes no credentials of others", async () => {
  const org = await testOrganization(db, "admins");
  const { id, token } = await person(org, "Root", { role: "owner" });
  const admin = { platform_admin: true, scopes: [...scopes] };
  await db.updateTable("api_token").set(admin).where("person_id", "=", id).execute();
  const ask = (path: string, body?: object) => api.call("POST", path, { token, body });
  const org2 = { slug: "theirs", name: "Theirs" };
  const all = () =>
    Promise.all([
      ask("/v1/orgs", org2),
      ask("/v1/orgs/admins/owner-token"),
      ask(`/v1/platform/people/${id}/link`),
      ask("/v1/platform/machines"),
    ]);
  await db
    .updateTable("session")
    .set({ fresh_at: new Date(Date.now() - 11 * 60_000) })
    .execute();
  await api.platform.wakeups.send(db, "tokens");
  await eventually(async () => (await ask("/v1/orgs", {})).status === 403, "the session is stale");
  for (const answer of await all()) assert.deepEqual(codeOf(answer), [403, "fresh_sign_in_required"], answer.text);
  await db.updateTable("session").set({ fresh_at: new Date() }).execute();
  await api.platform.wakeups.send(db, "tokens");
  await eventually(async () => (await ask("/v1/orgs", {})).status === 400, "the session is fresh");
  const statuses = (await all()).map(({ status }) => status);
  assert.deepEqual(statuses, [201, 201, 201, 409]);
});
