import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { WebSocket } from "ws";
import { softAuthenticator } from "../../../test/support/authenticator.ts";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { peopleAt } from "../../../test/support/people.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { limits } from "../../contract/limits.ts";
import { tunnelProtocol } from "../../contract/table.ts";
import { silentLog, type Log } from "../../kit/log.ts";
import { addIdentity, sessionWithText } from "./people.ts";

const logged: string[] = [];
const note = (...said: unknown[]) => void logged.push(JSON.stringify(said));
const log: Log = { ...silentLog, debug: note, info: note, warn: note, error: note, child: () => log };
const api = await sharedApi({ http: { log } });
const { db } = api.database;
const { post, entered, invite, person } = peopleAt(api, "https://berth.test");

const get = (path: string, token: string) => api.call("GET", path, { token });
const codeOf = ({ status, body }: Awaited<ReturnType<typeof get>>) => [status, body["code"]];

/** Follows a stream; `over` resolves with its last event. */
async function follow(path: string, token: string) {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${api.baseUrl}${path}?follow=true`, { headers });
  assert.equal(response.status, 200);
  return { over: response.text().then((text) => text.trim().split("\n\n").at(-1) ?? "") };
}

/** Opens a terminal of a project; `over` resolves with why it was closed. */
async function openTerminal(project: { id: string; slug: string }, org_id: string, token: string) {
  const owner = { org_id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const path = `/v1/projects/${project.slug}/runs`;
  const made = await api.call("POST", path, { token, body: { command: "bash", terminal: true } });
  assert.equal(made.status, 201, made.text);
  const url = `${api.baseUrl.replace("http", "ws")}${path}/${(made.body["run"] as { number: number }).number}/terminal`;
  const socket = new WebSocket(url, [tunnelProtocol], { headers: { authorization: `Bearer ${token}` } });
  await once(socket, "open");
  return { over: once(socket, "close").then(([code, reason]) => `${String(code)} ${String(reason)}`) };
}

type Ada = Awaited<ReturnType<typeof person>>;
type Org = Awaited<ReturnType<typeof testOrganization>>;
const ways: Record<string, { act: (ada: Ada, org: Org, kept: string) => Promise<{ status: number }>; code: string }> = {
  "a demotion": {
    act: (ada, org, kept) =>
      api.call("PATCH", `/v1/members/${ada.id}`, { token: org.owner, body: { role: "member", projects: [kept] } }),
    code: "unavailable",
  },
  "a removal": {
    act: (ada, org) => api.call("DELETE", `/v1/members/${ada.id}`, { token: org.owner }),
    code: "unauthorized",
  },
  "signing out everywhere": {
    act: ({ token }) => api.call("POST", "/v1/me/sessions/end", { token }),
    code: "unauthorized",
  },
};
for (const [what, { act, code }] of Object.entries(ways))
  test(`${what} ends a person's open streams and terminals within a second`, async () => {
    const org = await testOrganization(db, `ends-${what.replaceAll(" ", "-")}`);
    const [kept, lost] = [await testProject(api.platform, org), await testProject(api.platform, org)];
    const ada = await person(org.owner, "Ada", { role: "owner" });
    const streams = [
      await follow("/v1/activity/changes", ada.token),
      await follow(`/v1/projects/${lost.slug}/logs`, ada.token),
    ];
    const terminal = await openTerminal(lost, org.id, ada.token);
    const beside = await follow("/v1/activity/changes", org.owner);
    assert.ok((await act(ada, org, kept.slug)).status < 300);
    for (const { over } of streams) assert.match(await over, new RegExp(`event: error\ndata: .*"code":"${code}"`));
    assert.match(await terminal.over, /^4000 (?:Your rights have changed|The request has no valid token)/);
    assert.equal(await Promise.race([beside.over, setImmediate("open")]), "open", "another person's stream goes on");
    const left = code === "unavailable" ? 404 : 401;
    assert.equal((await get(`/v1/projects/${lost.slug}/logs`, ada.token)).status, left);
  });

test("sessions and programs do not use up the tokens of an organization, and a person has at most 30 sessions", async () => {
  const org = await testOrganization(db, "crowded");
  const { id, signIn } = await person(org.owner, "Ada");
  const { rows } = await api.database.pool.query<{ count: number }>(
    `insert into session (id, person_id, token_id, hash, method, user_agent, address, created_at, expires_at)
     select 'ses_00' || n, person_id, id, sha256(n::text::bytea), 'passkey', '', '', now(), now() + interval '1 day'
     from api_token, generate_series(1, $2) n where id = $1 returning 1`,
    [id, limits.tokens_per_organization],
  );
  assert.equal(rows.length, limits.tokens_per_organization);
  await api.database.pool.query(
    `insert into api_token (id, org_id, name, kind, role, platform_admin, scopes, approval_mode, prefix, hash, expires_at)
     select 'tok_00' || n, $1, 'Agent', 'mcp', 'member', false, '{}', true, 'x', sha256(n::text::bytea), now() + interval '1 day'
     from generate_series(1, $2) n`,
    [org.id, limits.tokens_per_organization],
  );
  const made = await api.call("POST", "/v1/api-tokens", { token: org.owner, body: { name: "ci" } });
  assert.equal(made.status, 201, made.text);
  const { token } = await signIn();
  assert.equal(((await get("/v1/me/sessions", token)).body["sessions"] as unknown[]).length, 30);
});

test("an owner who cannot sign in again keeps no organization reachable, however many sessions are open", async () => {
  const org = await testOrganization(db, "reachable");
  const ada = await person(org.owner, "Ada", { role: "owner" });
  await ada.signIn();
  await db.deleteFrom("passkey").where("credential_id", "=", ada.device.id).execute();
  const { api_tokens: all } = (await get("/v1/api-tokens", ada.token)).body as {
    api_tokens: { id: string; role: string; platform_admin: boolean }[];
  };
  const end = (id: string) => api.call("DELETE", `/v1/api-tokens/${id}`, { token: org.operator });
  const [admin, owner] = [true, false].map(
    (isAdmin) => all.find(({ role, platform_admin: is }) => role === "owner" && is === isAdmin)?.id ?? "",
  ) as [string, string];
  assert.equal((await end(owner)).status, 204);
  assert.deepEqual(codeOf(await end(admin)), [409, "last_owner_token"]);
});

test("an administrator of the platform is one only in the organization whose member is one", async () => {
  const [home, other] = [await testOrganization(db, "admins"), await testOrganization(db, "guests")];
  const ada = await person(home.operator, "Ada", { role: "owner", platform_admin: true });
  assert.equal((await get("/v1/orgs", ada.token)).status, 200);
  const elsewhere = entered(await post("join", { code: await invite(other.owner, { role: "owner" }) }, ada.cookie));
  assert.deepEqual(codeOf(await get("/v1/orgs", elsewhere.token)), [403, "operator_only"]);
  assert.deepEqual(codeOf(await get("/v1/platform/people", elsewhere.token)), [403, "operator_only"]);
  const invited = await api.call("POST", "/v1/invites", {
    token: elsewhere.token,
    body: { role: "owner", platform_admin: true },
  });
  assert.equal(invited.status, 403);
  const back = entered(await post("organization", { organization: home.slug }, elsewhere.cookie));
  assert.equal((await get("/v1/orgs", back.token)).status, 200);
});

test("a member changes no rights, their own included, and no membership of another organization", async () => {
  const [home, other] = [await testOrganization(db, "own-rights"), await testOrganization(db, "foreign-rights")];
  const [mia, foreign] = [await person(home.owner, "Mia"), await person(other.owner, "Finn")];
  const change = (token: string, id: string) =>
    api.call("PATCH", `/v1/members/${id}`, { token, body: { role: "owner" } });
  assert.deepEqual(codeOf(await change(mia.token, mia.id)), [403, "owner_only"]);
  const ada = await person(home.owner, "Ada", { role: "owner" });
  assert.deepEqual(codeOf(await change(ada.token, foreign.id)), [404, "not_found"]);
});

test("an invitation's code is in its link's fragment, and in no log, list, activity or referrer", async () => {
  const org = await testOrganization(db, "discreet");
  const code = await invite(org.owner, { email: "ada@example.com" });
  await post("invitation", { code });
  await post("invitation", { code: `${code}x` });
  await post("join", { code });
  const page = await api.call("GET", "/join", { headers: { accept: "text/html" } });
  assert.equal(page.headers.get("referrer-policy"), "no-referrer");
  for (const path of ["/v1/activity", "/v1/invites"]) assert.ok(!(await get(path, org.owner)).text.includes(code));
  assert.ok(!logged.some((line) => line.includes(code)));
  const { rows } = await api.database.pool.query<{ text: string }>("select invite::text as text from invite");
  assert.ok(rows.length > 0 && !rows.some(({ text }) => text.includes(code)));
});

test("what a person did keeps their name after their removal", async () => {
  const org = await testOrganization(db, "memory");
  const ada = await person(org.owner, "Ada");
  const body = { slug: "hers", name: "Hers" };
  assert.equal((await api.call("POST", "/v1/projects", { token: ada.token, body })).status, 201);
  assert.equal((await api.call("DELETE", `/v1/members/${ada.id}`, { token: org.owner })).status, 204);
  const { activity } = (await get("/v1/activity", org.owner)).body as {
    activity: { action: string; actor: { name: string } }[];
  };
  assert.equal(activity.find(({ action }) => action === "project.created")?.actor.name, "Ada");
});

test("an organization has a limited number of people and open invitations, and a person of passkeys and identities", async () => {
  const org = await testOrganization(db, "full");
  const ada = await person(org.owner, "Ada");
  const { person_id } = await db
    .selectFrom("api_token")
    .select("person_id")
    .where("id", "=", ada.id)
    .executeTakeFirstOrThrow();
  const fill = (text: string, most: number, ...given: unknown[]) => api.database.pool.query(text, [most, ...given]);
  const last = await invite(org.owner);
  await fill(
    `insert into person (id, name) select 'per_' || n, 'P' from generate_series(2, $1) n`,
    limits.members_per_organization,
  );
  await fill(
    `insert into api_token (id, org_id, name, kind, role, platform_admin, scopes, approval_mode, prefix, hash, person_id)
     select 'tok_m' || n, $2, 'P', 'member', 'member', false, '{}', false, '', sha256(('m' || n)::bytea), 'per_' || n from generate_series(2, $1) n`,
    limits.members_per_organization,
    org.id,
  );
  const device = softAuthenticator("https://berth.test");
  const { options } = (await post("join", { code: last, name: "Late" })).body;
  const late = await post("join", { code: last, name: "Late", passkey: device.create(options as never) });
  assert.deepEqual(codeOf(late), [409, "conflict"]);
  assert.equal((await post("invitation", { code: last })).status, 200, "the invitation is not used up by that");
  await fill(
    `insert into invite (id, org_id, hash, role, created_by, expires_at) select 'inv_' || n, $2, sha256(('i' || n)::bytea), 'member',
     (select id from api_token where org_id = $2 and role = 'owner' limit 1), now() + interval '1 day' from generate_series(2, $1) n`,
    limits.invites_open,
    org.id,
  );
  const more = await api.call("POST", "/v1/invites", { token: org.owner, body: {} });
  assert.deepEqual(codeOf(more), [409, "conflict"], more.text);
  const add = async () => {
    const first = await post("add-passkey", { name: "New" }, ada.cookie);
    const passkey = softAuthenticator("https://berth.test").create(first.body["options"] as never);
    return post("add-passkey", { name: "New", passkey }, ada.cookie);
  };
  await fill(
    `insert into passkey (credential_id, person_id, public_key, counter, rp_id) select 'c' || n, $2, '', 0, 'x' from generate_series(3, $1) n`,
    limits.passkeys_per_person,
    person_id,
  );
  const both = await Promise.all([add(), add()]);
  assert.deepEqual(
    both.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 409],
  );
  const session = await sessionWithText(db, ada.token);
  assert.ok(session);
  const link = (subject: number) =>
    addIdentity(api.platform, session, {
      issuer: "https://id.example",
      subject: `${subject}`,
      label: "x",
      name: "x",
      email: null,
    });
  for (let count = 0; count < limits.identities_per_person; count += 1) await link(count);
  await assert.rejects(link(99), /at most 10 identities/);
});

test("of two ways to sign in that are removed at once, one stays", async () => {
  const org = await testOrganization(db, "ways");
  const { token, cookie } = await person(org.owner, "Ada");
  const { options } = (await post("add-passkey", { name: "Phone" }, cookie)).body;
  const passkey = softAuthenticator("https://berth.test").create(options as never);
  assert.equal((await post("add-passkey", { name: "Phone", passkey }, cookie)).status, 200);
  const { passkeys } = (await get("/v1/me/passkeys", token)).body as { passkeys: { id: string }[] };
  const removed = await Promise.all(passkeys.map(({ id }) => api.call("DELETE", `/v1/me/passkeys/${id}`, { token })));
  assert.deepEqual(
    removed.map(({ status }) => status).toSorted((a, b) => a - b),
    [204, 409],
  );
});
