import assert from "node:assert/strict";
import { test } from "node:test";
import { softAuthenticator } from "../../test/support/authenticator.ts";
import { client, followTo, startFalseIssuer, startGitHub, startIssuer } from "../../test/support/issuer.ts";
import { eventually } from "../../test/support/eventually.ts";
import { sharedApi, testOrganization } from "../../test/support/test-platform.ts";
import { createOutgoingHttp } from "../adapters/outgoing-http/outgoing-http.ts";

const origin = "https://berth.test";
const outgoingHttp = createOutgoingHttp({ resolve: async () => [], mayReach: (address) => address === "127.0.0.1" });
const api = await sharedApi({ ports: { outgoingHttp } });
(api.platform.addresses as { controlUrl: string }).controlUrl = origin;
const { db } = api.database;

const callback = (id: string) => `${origin}/session/oidc/${id}/callback`;
const issuer = await startIssuer(["keycloak", "other"].map(callback));
const other = await startIssuer([callback("second")]);
const falseIssuer = await startFalseIssuer();
const gitHub = await startGitHub();
const org = await testOrganization(db, "providers");

const set = (id: string, body: object) =>
  api.call("PUT", `/v1/platform/providers/${id}`, {
    token: org.operator,
    body: { kind: "oidc", name: id, ...client, ...body },
  });
for (const [id, body] of Object.entries({
  keycloak: { issuer: issuer.url },
  second: { issuer: other.url },
  false: { issuer: falseIssuer.url },
  hub: { kind: "github", issuer: gitHub.url },
})) {
  const stored = await set(id, body);
  assert.equal(stored.status, 200, stored.text);
  assert.ok(!stored.text.includes(client.client_secret));
}

type Answer = Awaited<ReturnType<typeof api.call>>;
const ownPage = { origin, "x-berth-dashboard": "1", "user-agent": "Browser 1.0" };
const post = (path: string, body: object, cookie = "") =>
  api.call("POST", `/session/${path}`, { headers: { ...ownPage, cookie }, body });
const cookieOf = ({ headers }: Answer, name: string) =>
  headers
    .getSetCookie()
    .map((each) => each.split(";")[0] as string)
    .find((each) => each.startsWith(`__Host-${name}=`) && !each.endsWith("=")) ?? "";

/** Opens what the provider sends the browser back to, with the cookie of the attempt. */
const arrive = (url: string, cookie: string) => {
  const { pathname, search } = new URL(url);
  return api.call("GET", `${pathname}${search}`, { headers: { cookie } });
};

/** Goes to a provider and comes back. */
async function goTo(id: string, body: object, cookie = ""): Promise<Answer> {
  const started = await post(`oidc/${id}`, body, cookie);
  if (started.status !== 200) return started;
  return arrive(await followTo(String(started.body["url"])), cookieOf(started, "berth_attempt"));
}

async function tokenOf(answer: Answer): Promise<string> {
  assert.equal(answer.status, 303, answer.text);
  return String((await post("resume", {}, cookieOf(answer, "berth_session"))).body["token"]);
}

async function invite(body: object = {}): Promise<string> {
  const made = await api.call("POST", "/v1/invites", { token: org.owner, body });
  return String(made.body["url"]).split("/join#")[1] as string;
}

const me = async (token: string) => (await api.call("GET", "/v1/me", { token })).body;
const nameOf = async (token: string) => ((await me(token))["person"] as { name: string }).name;
const people = async () => (await db.selectFrom("person").select("id").execute()).length;

/** Makes a person who has a passkey, and signs them in. */
async function withPasskey(name: string) {
  const device = softAuthenticator(origin);
  const code = await invite();
  const { body } = await post("join", { code, name });
  const passkey = device.create(body["options"] as never);
  const joined = await post("join", { code, name, passkey });
  assert.equal(joined.status, 200, joined.text);
  return { device, cookie: cookieOf(joined, "berth_session"), token: String(joined.body["token"]) };
}

const age = (column: "fresh_at" | "created_at") =>
  db
    .updateTable("session")
    .set({ [column]: new Date(Date.now() - 11 * 60_000) })
    .execute()
    .then(() => api.platform.wakeups.send(db, "tokens"));

test("a stranger's identity creates nothing; an invitation makes it an account, whatever its e-mail becomes", async () => {
  issuer.account.id = "ada-1";
  const before = await people();
  const refused = await goTo("keycloak", { to: "sign-in" });
  assert.deepEqual([refused.status, await people()], [401, before]);
  assert.match(refused.text, /No account here\. Ask an owner for an invitation\./);
  const joined = await goTo("keycloak", { to: "join", code: await invite() });
  assert.equal(await nameOf(await tokenOf(joined)), "Ada");
  issuer.account.email = "new@example.com";
  const [one, two] = [await goTo("keycloak", { to: "sign-in" }), await goTo("keycloak", { to: "sign-in" })];
  const tokens = [await tokenOf(one), await tokenOf(two)];
  assert.notEqual(tokens[0], tokens[1]);
  assert.equal(await nameOf(tokens[1] as string), "Ada");
  issuer.account.email = "ada@example.com";
});

test("the same e-mail address at another issuer does not sign in", async () => {
  issuer.account.id = other.account.id = "same";
  await tokenOf(await goTo("keycloak", { to: "join", code: await invite({ email: "ada@example.com" }) }));
  const before = await people();
  assert.equal((await goTo("second", { to: "sign-in" })).status, 401);
  assert.equal(await people(), before);
});

test("one invitation makes one person, also by a provider", async () => {
  const code = await invite();
  issuer.account.id = "first";
  assert.equal((await goTo("keycloak", { to: "join", code })).status, 303);
  issuer.account.id = "late";
  assert.deepEqual([(await goTo("keycloak", { to: "join", code })).status], [401]);
  issuer.account.id = "first";
  const again = await goTo("keycloak", { to: "join", code: await invite() });
  assert.equal(again.status, 409, again.text);
});

test("a disabled person stays disabled, whoever the provider says they are", async () => {
  issuer.account.id = "barred";
  const token = await tokenOf(await goTo("keycloak", { to: "join", code: await invite() }));
  const { id } = (await me(token))["person"] as { id: string };
  const change = (verb: string) =>
    api.call("POST", `/v1/platform/people/${id}/${verb}`, { token: org.operator }).then(({ status }) => status);
  assert.equal(await change("disable"), 200);
  const refused = await goTo("keycloak", { to: "sign-in" });
  assert.deepEqual([refused.status, cookieOf(refused, "berth_session")], [401, ""]);
  assert.match(refused.text, /disabled/);
  assert.notEqual((await goTo("keycloak", { to: "join", code: await invite() })).status, 303);
  assert.equal(await change("disable"), 409);
  assert.equal(await change("enable"), 200);
  assert.equal(await nameOf(await tokenOf(await goTo("keycloak", { to: "sign-in" }))), "Ada");
});

test("GitHub signs in, too", async () => {
  assert.equal((await goTo("hub", { to: "sign-in" })).status, 401);
  assert.equal(await nameOf(await tokenOf(await goTo("hub", { to: "join", code: await invite() }))), "Ada");
  const token = await tokenOf(await goTo("hub", { to: "sign-in" }));
  const { identities } = (await api.call("GET", "/v1/me/identities", { token })).body as { identities: object[] };
  assert.partialDeepStrictEqual(identities, [{ provider: "hub", issuer: gitHub.url, label: "ada" }]);
});

test("an answer without its attempt, of another attempt, at another provider or a second time is refused", async () => {
  issuer.account.id = "ada-1";
  const started = await post("oidc/keycloak", { to: "sign-in" });
  const url = await followTo(String(started.body["url"]));
  const cookie = cookieOf(started, "berth_attempt");
  assert.match(started.headers.get("set-cookie") ?? "", /^__Host-berth_attempt=.*HttpOnly; SameSite=Lax; Secure$/);
  const foreign = cookieOf(await post("oidc/keycloak", { to: "sign-in" }), "berth_attempt");
  for (const [at, by] of [
    [url, ""],
    [url, foreign],
    [url, `${cookie}x`],
    [url.replace("/keycloak/", "/second/"), cookie],
    [url.replace(/state=[^&]*/, "state=x"), cookie],
  ] as const) {
    const refused = await arrive(at, by);
    assert.deepEqual([refused.status, cookieOf(refused, "berth_session")], [401, ""], `${at} ${by}`);
  }
  assert.equal((await arrive(url, cookie)).status, 303);
  assert.equal((await arrive(url, cookie)).status, 401);
  const elsewhere = await api.call("POST", "/session/oidc/keycloak", {
    headers: { ...ownPage, origin: "https://shop.berth.test" },
    body: { to: "sign-in" },
  });
  assert.equal(elsewhere.status, 403);
});

test("a sign-in leads back to a path of this platform alone", async () => {
  issuer.account.id = "ada-1";
  const back = await goTo("keycloak", { to: "sign-in", next: "/session/authorize?a=%2F%2Fb" });
  assert.equal(back.headers.get("location"), "/session/authorize?a=%2F%2Fb");
  for (const next of [
    "//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "javascript:1",
    "/a\tb",
    "/a\\b",
    "",
  ])
    assert.equal((await post("oidc/keycloak", { to: "sign-in", next })).status, 400, next);
});

test("an ID token with a wrong issuer, audience, nonce, signature, age or without one is refused", async () => {
  const attempt = async () => {
    const started = await post("oidc/false", { to: "join", code });
    const url = new URL(String(started.body["url"]));
    falseIssuer.state.nonce = url.searchParams.get("nonce") ?? "";
    const back = `${callback("false")}?code=x&state=${url.searchParams.get("state")}`;
    return arrive(back, cookieOf(started, "berth_attempt"));
  };
  const code = await invite();
  const before = await people();
  for (const falsified of [
    { claims: { iss: "https://accounts.example" } },
    { claims: { aud: "another" } },
    { claims: { nonce: "another" } },
    { claims: { exp: Math.floor(Date.now() / 1000) - 90 }, says: /ended \d+ seconds ago/ },
    { claims: { nbf: Math.floor(Date.now() / 1000) + 900 }, says: /begins in \d+ seconds/ },
    { claims: { sub: undefined } },
    { alg: "none" as const },
    { badSignature: true },
  ]) {
    falseIssuer.state.falsified = falsified;
    const refused = await attempt();
    assert.equal(refused.status, 401, `${JSON.stringify(falsified)} ${refused.text}`);
    if ("says" in falsified) assert.match(refused.text, falsified.says);
  }
  assert.equal(await people(), before);
  falseIssuer.state.falsified = { claims: { name: "<b>Eve</b>", email: "x\u202ey" } };
  assert.equal((await attempt()).status, 303);
});

test("an issuer that is down is named, in ten seconds, and passkeys go on", async () => {
  const { device } = await withPasskey("Pat");
  falseIssuer.state.isDown = true;
  // Another version of the row, so that its description is read again.
  await db.updateTable("provider").set({ updated_at: new Date() }).where("id", "=", "false").execute();
  const startedAt = performance.now();
  const [down, { body }] = await Promise.all([post("oidc/false", { to: "sign-in" }), post("passkey", {})]);
  assert.ok(performance.now() - startedAt < 11_000);
  assert.deepEqual([down.status, down.body["code"]], [502, "provider_unavailable"]);
  assert.match(String(down.body["error"]), /^false does not work/);
  assert.equal((await post("passkey", { passkey: device.get(body["options"] as never) })).status, 200);
  falseIssuer.state.isDown = false;
});

test("an issuer of every company, without HTTPS, that describes another one or does not answer is not stored", async () => {
  for (const url of [
    "https://login.microsoftonline.com/common/v2.0",
    "https://login.microsoftonline.com/organizations/v2.0",
    "https://login.microsoftonline.com/{tenantid}/v2.0",
    "http://accounts.example",
    `${issuer.url}/`,
    "http://127.0.0.1:1",
    "http://10.0.0.1",
  ]) {
    const refused = await set("new", { issuer: url });
    assert.deepEqual([refused.status, refused.body["code"]], [400, "invalid_request"], `${url} ${refused.text}`);
  }
  const { providers } = (await api.call("GET", "/v1/platform/providers", { token: org.operator })).body as {
    providers: { id: string; callback_url: string }[];
  };
  assert.deepEqual(
    providers.map(({ id }) => id),
    ["keycloak", "second", "false", "hub"],
  );
  assert.equal(providers[0]?.callback_url, callback("keycloak"));
});

test("a person links another identity from a fresh session alone, and only one that nobody has", async () => {
  issuer.account.id = "linked";
  const { cookie, token } = await withPasskey("Lin");
  const link = async () =>
    assert.equal((await goTo("keycloak", { to: "link" }, cookie)).headers.get("location"), "/account");
  await link();
  const { id } = (await idsOf(token)).identities[0] as { id: string };
  assert.equal((await api.call("DELETE", `/v1/me/identities/${id}`, { token })).status, 204);
  await link();
  issuer.account.id = "first";
  assert.equal((await goTo("keycloak", { to: "link" }, cookie)).status, 409);
  assert.equal((await goTo("keycloak", { to: "link" })).status, 401);
  issuer.account.id = "linked-2";
  await age("fresh_at");
  const stale = await goTo("keycloak", { to: "link" }, cookie);
  assert.deepEqual([stale.status, stale.body["code"]], [403, "fresh_sign_in_required"]);
  const { identities } = (await api.call("GET", "/v1/me/identities", { token })).body as { identities: object[] };
  assert.equal(identities.length, 1);
});

test("a provider that asks the person again makes a session fresh, for the person's own identity alone", async () => {
  issuer.account.id = "fresh";
  const joined = await goTo("keycloak", { to: "join", code: await invite() });
  const cookie = cookieOf(joined, "berth_session");
  const token = await tokenOf(joined);
  const { id } = (await idsOf(token)).identities[0] as { id: string };
  const unlink = () => api.call("DELETE", `/v1/me/identities/${id}`, { token });
  assert.equal((await unlink()).body["code"], "fresh_sign_in_required");
  issuer.account.id = "first";
  assert.equal((await goTo("keycloak", { to: "prove" }, cookie)).status, 401);
  assert.equal((await unlink()).body["code"], "fresh_sign_in_required");
  issuer.account.id = "fresh";
  assert.equal((await goTo("keycloak", { to: "prove" }, cookie)).status, 303);
  assert.deepEqual([(await unlink()).body["code"], (await idsOf(token)).identities.length], ["conflict", 1]);
});

async function idsOf(token: string) {
  const read = async (path: string) => (await api.call("GET", `/v1/me/${path}`, { token })).body;
  return {
    passkeys: (await read("passkeys"))["passkeys"] as { id: string; name: string; usable: boolean }[],
    identities: (await read("identities"))["identities"] as { id: string }[],
  };
}

test("a person adds and names passkeys from a fresh session, and keeps the last way to sign in", async () => {
  const { cookie, token, device } = await withPasskey("Kim");
  const second = softAuthenticator(origin);
  const add = async (by = cookie) => {
    const first = await post("add-passkey", { name: "Phone" }, by);
    if (first.status !== 200) return first;
    return post("add-passkey", { name: "Phone", passkey: second.create(first.body["options"] as never) }, by);
  };
  assert.equal((await add("")).status, 401);
  assert.equal((await add()).status, 200);
  assert.equal((await add()).status, 409);
  const { passkeys } = await idsOf(token);
  assert.deepEqual(
    passkeys.map(({ name, usable }) => [name, usable]),
    [
      ["Passkey", true],
      ["Phone", true],
    ],
  );
  const [one, two] = passkeys.map(({ id }) => id);
  const rename = (as: string) => api.call("PATCH", `/v1/me/passkeys/${one}`, { token: as, body: { name: "Laptop" } });
  assert.equal((await rename(token)).status, 204);
  assert.equal((await rename((await withPasskey("Eve")).token)).status, 404);
  await age("fresh_at");
  assert.equal((await add()).body["code"], "fresh_sign_in_required");
  const remove = (id?: string) => api.call("DELETE", `/v1/me/passkeys/${id}`, { token });
  await eventually(async () => (await remove("pky_none")).status === 403, "the session is stale");
  assert.equal((await remove(two)).body["code"], "fresh_sign_in_required");
  const { options } = (await post("prove", {}, cookie)).body;
  const stranger = softAuthenticator(origin);
  assert.equal((await post("prove", { passkey: stranger.get(options as never) }, cookie)).status, 401);
  assert.equal((await post("passkey", { passkey: device.get(options as never) })).status, 401);
  assert.equal((await post("prove", { passkey: device.get(options as never) }, cookie)).status, 200);
  assert.equal((await remove(two)).status, 204);
  assert.deepEqual([(await remove(one)).body["code"], (await remove("pky_none")).status], ["conflict", 404]);
  assert.equal((await api.call("DELETE", `/v1/me/passkeys/${one}`, { token: org.owner })).body["code"], "conflict");
});

test("a session that lies open gets no way to sign in by joining or switching to another organization", async () => {
  issuer.account.id = "no-passkey";
  const cookie = cookieOf(await goTo("keycloak", { to: "join", code: await invite() }), "berth_session");
  const add = async (by: string) => (await post("add-passkey", { name: "X" }, by)).status;
  assert.equal(await add(cookie), 200);
  await age("created_at");
  assert.equal(await add(cookie), 403);
  const elsewhere = await testOrganization(db, "elsewhere");
  const invited = await api.call("POST", "/v1/invites", { token: elsewhere.owner, body: {} });
  const joined = await post("join", { code: String(invited.body["url"]).split("/join#")[1] }, cookie);
  assert.equal(joined.status, 200, joined.text);
  assert.equal(await add(cookieOf(joined, "berth_session")), 403);
  const switched = await post("organization", { organization: org.slug }, cookieOf(joined, "berth_session"));
  assert.deepEqual([switched.status, await add(cookieOf(switched, "berth_session"))], [200, 403]);
});

test("a person changes their name, for their memberships as well", async () => {
  const { token } = await withPasskey("Sam");
  assert.equal((await api.call("PATCH", "/v1/me", { token, body: { name: "Samira" } })).status, 204);
  const { members } = (await api.call("GET", "/v1/members", { token: org.owner })).body as {
    members: { name: string }[];
  };
  assert.ok(members.some(({ name }) => name === "Samira"));
  assert.equal((await api.call("PATCH", "/v1/me", { token: org.owner, body: { name: "X" } })).status, 409);
});

test("without its provider an identity signs nobody in and is no way to sign in", async () => {
  gitHub.account.id = 7;
  const token = await tokenOf(await goTo("hub", { to: "join", code: await invite() }));
  assert.equal((await api.call("DELETE", "/v1/platform/providers/hub", { token: org.operator })).status, 204);
  assert.equal((await goTo("hub", { to: "sign-in" })).status, 404);
  assert.partialDeepStrictEqual((await idsOf(token)).identities, [{ provider: null }]);
  const { members } = (await api.call("GET", "/v1/members", { token: org.owner })).body as {
    members: { id: string; can_sign_in: boolean }[];
  };
  assert.equal(members.at(-1)?.can_sign_in, false);
  assert.equal((await api.call("GET", "/v1/platform/providers", { token: org.owner })).body["code"], "operator_only");
});

test("of two providers that are added at once with one issuer, one is refused", async () => {
  const twin = { kind: "github", issuer: "https://github.example.com" };
  const answers = await Promise.all(["one", "two"].map((id) => set(id, twin)));
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 409],
  );
});
