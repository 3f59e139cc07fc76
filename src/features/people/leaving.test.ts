import assert from "node:assert/strict";
import { test } from "node:test";
import { consentBrowser, nonceOf } from "../../../test/support/consent.ts";
import { testProject } from "../../../test/support/fixtures.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { peopleAt } from "../../../test/support/people.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";

const api = await sharedApi();
const { db } = api.database;
const { post, entered, invite, person } = peopleAt(api, "https://berth.test");

const get = (path: string, token: string) => api.call("GET", path, { token });
const leave = (token: string) => api.call("DELETE", "/v1/me/membership", { token });
const isOver = async (token: string) => (await get("/v1/me", token)).status === 401;
const codeOf = ({ status, body }: Awaited<ReturnType<typeof get>>) => [status, body["code"]];
const latest = async (token: string) => {
  const { activity } = (await get("/v1/activity", token)).body as { activity: { summary: string }[] };
  return activity.map(({ summary }) => summary);
};

test("a person leaves an organization, and everything that they made there ends", async () => {
  const org = await testOrganization(db, "left");
  const { slug } = await testProject(api.platform, org);
  const ada = await person(org.owner, "Ada", { projects: [slug] });
  const again = await ada.signIn();
  const made = await api.call("POST", "/v1/api-tokens", { token: ada.token, body: { name: "script" } });
  const { rows } = { rows: [again.token, String(made.body["token"])] };
  assert.equal((await leave(ada.token)).status, 204);
  for (const token of [ada.token, ...rows]) await eventually(() => isOver(token), "what was hers has ended");
  const { members } = (await get("/v1/members", org.owner)).body as { members: object[] };
  assert.deepEqual(members, []);
  assert.equal((await latest(org.owner))[0], "Ada left the organization");
});

test("the last owner does not leave, nor anybody who is no person, and an agent asks", async () => {
  const org = await testOrganization(db, "last");
  const grace = await person(org.owner, "Grace", { role: "owner" });
  assert.deepEqual(codeOf(await leave(org.owner)), [409, "conflict"]);
  const others = db.updateTable("api_token").set({ revoked_at: new Date() }).where("org_id", "=", org.id);
  await others.where("kind", "=", "token").execute();
  const refused = await leave(grace.token);
  assert.deepEqual(codeOf(refused), [409, "last_owner_token"]);
  assert.match(String(refused.body["hint"]), /Make another person with a passkey an owner/);
  await testToken(db, org.id, { role: "owner" });
  const { person_id } = await db
    .selectFrom("api_token")
    .select("person_id")
    .where("id", "=", grace.id)
    .executeTakeFirstOrThrow();
  const program = await testToken(db, org.id, { role: "owner", approval_mode: true });
  await db.updateTable("api_token").set({ kind: "cli", person_id }).where("id", "=", program.id).execute();
  assert.deepEqual(codeOf(await leave(program.text)), [403, "approval_required"]);
  const own = await testToken(db, org.id, { role: "owner" });
  await db.updateTable("api_token").set({ kind: "cli", person_id }).where("id", "=", own.id).execute();
  assert.equal((await leave(own.text)).status, 204);
  assert.ok(await isOver(grace.token));
});

test("an owner's own tokens end with them, so an organization keeps another owner", async () => {
  const org = await testOrganization(db, "alone");
  const { operator } = await testOrganization(db, "beside");
  const grace = await person(org.owner, "Grace", { role: "owner" });
  const of = { token: grace.token, body: { name: "script", role: "owner" } };
  const script = String((await api.call("POST", "/v1/api-tokens", of)).body["token"]);
  await db
    .updateTable("api_token")
    .set({ revoked_at: new Date() })
    .where("org_id", "=", org.id)
    .where("kind", "=", "token")
    .where("created_by", "is", null)
    .execute();
  const { person_id } = await db
    .selectFrom("api_token")
    .select("person_id")
    .where("id", "=", grace.id)
    .executeTakeFirstOrThrow();
  const member = `/v1/members/${grace.id}`;
  for (const ending of [
    leave(grace.token),
    api.call("DELETE", member, { token: script }),
    api.call("PATCH", member, { token: script, body: { role: "member" } }),
    api.call("POST", `/v1/platform/people/${person_id}/disable`, { token: operator }),
  ])
    assert.deepEqual(codeOf(await ending), [409, "last_owner_token"]);
  assert.deepEqual([await isOver(grace.token), await isOver(script)], [false, false]);
  await person(script, "Ada", { role: "owner" });
  assert.equal((await leave(grace.token)).status, 204);
});

test("a program learns nothing of its person's browsers, and one that is limited nothing of their wider tokens", async () => {
  const org = await testOrganization(db, "programs");
  const project = await testProject(api.platform, org);
  const ada = await person(org.owner, "Ada");
  await api.call("POST", "/v1/api-tokens", { token: ada.token, body: { name: "wide" } });
  const program = await testToken(db, org.id, { project_ids: [project.id] });
  const { person_id } = await db
    .selectFrom("api_token")
    .select("person_id")
    .where("id", "=", ada.id)
    .executeTakeFirstOrThrow();
  const expires_at = new Date(Date.now() + 86_400_000);
  const change = { kind: "cli", name: "program", person_id, expires_at } as const;
  await db.updateTable("api_token").set(change).where("id", "=", program.id).execute();
  for (const noun of ["sessions", "passkeys", "identities"]) {
    const [own, of] = [(await get(`/v1/me/${noun}`, ada.token)).body[noun], await get(`/v1/me/${noun}`, program.text)];
    assert.deepEqual([(own as object[]).length, of.body[noun]], [noun === "identities" ? 0 : 1, []], noun);
  }
  const { api_tokens } = (await get("/v1/api-tokens", program.text)).body as { api_tokens: { name: string }[] };
  assert.deepEqual(
    api_tokens.map(({ name }) => name),
    ["program"],
  );
});

test("who is limited to projects sees only themselves and what is their own", async () => {
  const org = await testOrganization(db, "narrow");
  const { slug } = await testProject(api.platform, org);
  const ada = await person(org.owner, "Ada", { projects: [slug] });
  await person(org.owner, "Eve");
  const mine = await api.call("POST", "/v1/api-tokens", { token: ada.token, body: { name: "mine" } });
  const others = await api.call("POST", "/v1/api-tokens", { token: org.owner, body: { name: "others" } });
  const names = async (path: string, noun: string) =>
    ((await get(path, ada.token)).body[noun] as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(await names("/v1/members", "members"), ["Ada"]);
  assert.deepEqual(await names("/v1/api-tokens", "api_tokens"), ["mine"]);
  assert.deepEqual(await names("/v1/ssh-keys", "ssh_keys"), []);
  const end = (id: unknown) => api.call("DELETE", `/v1/api-tokens/${String(id)}`, { token: ada.token });
  const [foreign, missing] = [await end(others.body["id"]), await end("tok_none")];
  assert.deepEqual([foreign.status, foreign.text], [missing.status, missing.text]);
  assert.equal((await end(mine.body["id"])).status, 204);
});

test("a member revokes only their own tokens and what these made, and an owner all", async () => {
  const org = await testOrganization(db, "own");
  const [ada, eve] = [await person(org.owner, "Ada"), await person(org.owner, "Eve")];
  const make = async (token: string) =>
    (await api.call("POST", "/v1/api-tokens", { token, body: { name: "script" } })).body as {
      id: string;
      token: string;
    };
  const end = (token: string, { id }: { id: string }) => api.call("DELETE", `/v1/api-tokens/${id}`, { token });
  const first = await make(ada.token);
  const second = await make(first.token);
  const refused = await end(eve.token, second);
  assert.deepEqual(codeOf(refused), [403, "forbidden"]);
  assert.match(String(refused.body["error"]), /only their own/);
  assert.deepEqual(codeOf(await end(second.token, first)), [403, "forbidden"]);
  assert.equal((await end(first.token, second)).status, 204);
  assert.equal((await end(ada.token, first)).status, 204);
  assert.equal((await end(org.owner, await make(eve.token))).status, 204);
});

for (const [what, act] of Object.entries({
  removed: (admin: { id: string }, by: string) => api.call("DELETE", `/v1/members/${admin.id}`, { token: by }),
  demoted: (admin: { id: string }, by: string) =>
    api.call("PATCH", `/v1/members/${admin.id}`, { token: by, body: { role: "member" } }),
  disabled: async (admin: { id: string }, by: string) => {
    const { person_id } = await db
      .selectFrom("api_token")
      .select("person_id")
      .where("id", "=", admin.id)
      .executeTakeFirstOrThrow();
    return api.call("POST", `/v1/platform/people/${person_id}/disable`, { token: by });
  },
}))
  test(`the owner tokens that an administrator made in other organizations end when they are ${what}`, async () => {
    const org = await testOrganization(db, `admins-${what}`);
    const admin = await person(org.operator, "Root", { role: "owner", platform_admin: true });
    const made = async (path: string, body?: object) =>
      (await api.call("POST", path, { token: admin.token, body })).body as { owner_token: string };
    const [kept, left] = [`kept-${what}`, `left-${what}`];
    const alone = await made("/v1/orgs", { slug: kept, name: "Kept" });
    const first = await made("/v1/orgs", { slug: left, name: "Left" });
    const second = await made(`/v1/orgs/${left}/owner-token`);
    const owner = await person(first.owner_token, "Lin", { role: "owner" });
    const done = await act(admin, org.operator);
    assert.ok(done.status < 300, done.text);
    for (const token of [first, second])
      await eventually(() => isOver(token.owner_token), "an administrator's owner token has ended");
    assert.equal((await get("/v1/me", owner.token)).status, 200);
    assert.match((await latest(owner.token))[0] ?? "", /^Token "(?:First|Rescue) owner" revoked$/);
    assert.equal((await get("/v1/me", alone.owner_token)).status, 200, "an organization keeps its only owner");
    assert.match((await latest(org.operator)).join(), new RegExp(`only owner of ${kept}`));
  });

const switchTo = (organization: string, cookie: string) => post("organization", { organization }, cookie);

test("nothing of a person who has left works again: session, sign-in, invitations, unfetched programs, requests", async () => {
  const org = await testOrganization(db, "emptied");
  const project = await testProject(api.platform, org);
  const ada = await person(org.owner, "Ada", { role: "owner" });
  const sent = await invite(ada.token);
  const make = async (body: object) =>
    String((await api.call("POST", "/v1/api-tokens", { token: ada.token, body })).body["token"]);
  const agent = await make({ name: "agent", role: "owner", approval_mode: true });
  const asked = await api.call("DELETE", `/v1/projects/${project.slug}`, { token: agent });
  const { id: approval } = asked.body["approval"] as { id: string };
  const fetchToken = await allowedProgram(ada.cookie);
  assert.equal((await leave(ada.token)).status, 204);
  for (const token of [ada.token, agent]) await eventually(() => isOver(token), "it has ended");
  assert.equal((await get(`/v1/approvals/${approval}`, org.owner)).body["status"], "expired");
  assert.equal(await fetchToken(), "access_denied", "what she allowed before, and her program had not fetched");
  assert.equal((await post("invitation", { code: sent })).status, 401, "whom she invited");
  const resumed = await post("resume", {}, ada.cookie);
  assert.ok(await isOver((resumed.body["token"] as string | null) ?? "none"));
  assert.equal((await switchTo("emptied", ada.cookie)).status, 404);
  const { options } = (await post("passkey", {})).body;
  const refused = await post("passkey", { passkey: ada.device.get(options as never) });
  assert.deepEqual([refused.status, /in no organization/.test(refused.text)], [401, true]);
  const next = await invite(org.owner);
  const joining = await post("join", { code: next }, ada.cookie);
  assert.deepEqual(codeOf(joining), [400, "invalid_request"], "an ended session joins nothing");
});

/** Allows a command line's code in a browser; returns how the command line then fetches its token. */
async function allowedProgram(cookie: string): Promise<() => Promise<unknown>> {
  const form = async (path: string, fields: Record<string, string>) => {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    return (await api.call("POST", path, { headers, body: new URLSearchParams(fields).toString() })).body;
  };
  const { user_code, device_code } = (await form("/oauth/device", { client_id: "berth-cli" })) as Record<
    string,
    string
  >;
  const browser = consentBrowser(api.baseUrl, cookie);
  const press = (html: string, more: Record<string, string>) =>
    browser.post(
      "/session/device",
      { user_code: user_code ?? "", reach: "all", nonce: nonceOf(html), ...more },
      { origin: "https://berth.test" },
    );
  const { html } = await press((await browser.load("/session/device")).html, { choice: "open" });
  assert.equal((await press(html, { choice: "allow" })).status, 200);
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const asked = { grant_type, device_code: device_code ?? "", client_id: "berth-cli" };
  return async () => (await form("/oauth/token", asked))["error"];
}

test("of two owners who leave at once, and of one who leaves twice at once, one goes", async () => {
  const org = await testOrganization(db, "raced");
  const [ada, eve] = [
    await person(org.owner, "Ada", { role: "owner" }),
    await person(org.owner, "Eve", { role: "owner" }),
  ];
  const member = await person(org.owner, "Mia");
  const again = await member.signIn();
  const twice = await Promise.all([leave(member.token), leave(again.token)]);
  const others = twice.filter(({ status }) => status !== 204);
  assert.deepEqual(
    [twice.length - others.length, others.every(({ status }) => [401, 409].includes(status))],
    [1, true],
  );
  const left = (await latest(org.owner)).filter((summary) => summary === "Mia left the organization");
  assert.equal(left.length, 1);
  await db
    .updateTable("api_token")
    .set({ revoked_at: new Date() })
    .where(({ and }) => and({ org_id: org.id, kind: "token" }))
    .execute();
  const both = await Promise.all([leave(ada.token), leave(eve.token)]);
  assert.deepEqual(
    both.map(({ status }) => status).toSorted((a, b) => a - b),
    [204, 409],
  );
});

test("who is invited again comes with what the new invitation gives; the old one and old tokens stay ended", async () => {
  const [org, other] = [await testOrganization(db, "twice"), await testOrganization(db, "haven")];
  const first = await invite(org.owner, { role: "owner" });
  const ada = await person(other.owner, "Ada");
  const here = entered(await post("join", { code: first }, ada.cookie));
  await db.updateTable("session").set({ fresh_at: new Date() }).execute();
  await api.platform.wakeups.send(db, "tokens");
  const made = await eventually(async () => {
    const { status, body } = await api.call("POST", "/v1/api-tokens", {
      token: here.token,
      body: { name: "hers", role: "owner" },
    });
    return status === 201 && String(body["token"]);
  }, "her session is fresh");
  assert.equal((await leave(here.token)).status, 204);
  await eventually(() => isOver(made), "her token has ended");
  const home = await ada.signIn();
  assert.deepEqual(codeOf(await post("join", { code: first }, home.cookie)), [401, "unauthorized"]);
  const back = entered(await post("join", { code: await invite(org.owner) }, home.cookie));
  assert.equal((await get("/v1/me", back.token)).body["role"], "member");
  for (const token of [made, here.token]) assert.ok(await isOver(token));
});
