import assert from "node:assert/strict";
import { test } from "node:test";
import { scopes } from "../src/contract/access.ts";
import type { OutgoingOutcome } from "../src/ports/outgoing-http.ts";
import { answerOf, consentBrowser, cookieFor, nonceOf, proof } from "./support/consent.ts";
import { eventually } from "./support/eventually.ts";
import { testProject } from "./support/fixtures.ts";
import { connectFromNothing, redirect } from "./support/mcp-clients.ts";
import { sharedApi, testOrganization, testToken } from "./support/test-platform.ts";

/** What other sites answer, by address. */
const sites: Record<string, OutgoingOutcome> = {};
const seen: string[] = [];
const limits = { timeoutMs: 3000, excerptBytes: 5 * 1024 + 1 };
const api = await sharedApi({
  ports: {
    outgoingHttp: {
      async send({ url, timeoutMs, excerptBytes }) {
        assert.deepEqual({ timeoutMs, excerptBytes }, limits, "a document that is slow or large is read no further");
        seen.push(url);
        return sites[url] ?? { outcome: "failed", reason: "It is private." };
      },
    },
  },
});
const { db } = api.database;
const org = await testOrganization(db, "acme");
await testProject(api.platform, org, "demo");
await testProject(api.platform, org, "other");
const browser = consentBrowser(api.baseUrl, await cookieFor(api.baseUrl, org.owner));

type Answer = Awaited<ReturnType<typeof api.call>>;
const post = (path: string, form: Record<string, string> | string) =>
  api.call("POST", path, {
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: typeof form === "string" ? form : new URLSearchParams(form).toString(),
  });
const register = (more: object = {}) =>
  api.call("POST", "/oauth/register", { body: { client_name: "Agent", redirect_uris: [redirect], ...more } });
const client_id = String((await register()).body["client_id"]);
const own = proof();
const asked = (change: Record<string, string> = {}) => {
  const query = new URLSearchParams({
    ...{ response_type: "code", client_id, redirect_uri: redirect, state: "s1", resource: `${api.baseUrl}/mcp` },
    ...{ code_challenge: own.challenge, code_challenge_method: "S256", ...change },
  });
  return `/session/authorize?${query.toString()}`;
};
const exchange = (code: string, change: Record<string, string> = {}) =>
  post("/oauth/token", {
    ...{ grant_type: "authorization_code", code, client_id, redirect_uri: redirect, code_verifier: own.verifier },
    ...change,
  });
const newCode = async (form?: Record<string, string>) =>
  answerOf((await browser.decide(asked(), form)).headers).get("code") ?? "";
const connect = async (form?: Record<string, string>) => {
  const { status, body, text } = await exchange(await newCode(form));
  assert.equal(status, 200, text);
  return String(body["access_token"]);
};
const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
const atTools = (token: string, body: object = list) =>
  api.call("POST", "/mcp", { token, body, headers: { accept: "application/json, text/event-stream" } });
const errorOf = ({ status, body }: Answer) => [status, body["error"]];

const described = "https://sdk.example/client.json";
const ways = [undefined, described] as const;
for (const [name, way] of (["SDK 1", "SDK 2"] as const).flatMap((name) => ways.map((way) => [name, way] as const)))
  test(`a client of ${name}${way === undefined ? "" : " with a document"} connects from the address alone: discovery, registration, consent, tools, a call`, async () => {
    const content = { client_id: described, client_name: "An SDK", redirect_uris: [redirect] };
    sites[described] = { outcome: "answered", status: 200, excerpt: JSON.stringify(content) };
    const client = await connectFromNothing(name, api.baseUrl, browser, way);
    if (way !== undefined) assert.ok(seen.includes(described));
    assert.ok((await client.listTools()).tools.length > 10);
    const called = await client.callTool({ name: "projects", arguments: { action: "get", slug: "demo" } });
    assert.match(JSON.stringify(called.content), /demo/);
    const deleting = await client.callTool({ name: "projects_change", arguments: { action: "delete", slug: "demo" } });
    assert.match(
      JSON.stringify(deleting.content),
      /approval_required/,
      "a person is asked unless they chose otherwise",
    );
    await client.close();
  });

test("a page for consent names the program, who gets the answer and what is granted, and is not framed", async () => {
  const posing = await register({ client_name: "Editor (described by editor.example)" });
  const { html: posed } = await browser.load(asked({ client_id: String(posing.body["client_id"]) }));
  assert.match(posed, /Described by<\/th><td>itself</, "a name does not pretend to be described by a site");
  const { body } = await register({ client_name: "<b>Evil‮</b>", redirect_uris: ["https://agents.example/callback"] });
  const { html, headers } = await browser.load(
    asked({ client_id: String(body["client_id"]), redirect_uri: "https://agents.example/callback" }),
  );
  for (const text of ["agents.example", "acme", "&lt;b&gt;Evil&lt;/b&gt;", "demo", "whoever runs that site"])
    assert.ok(html.includes(text), text);
  assert.doesNotMatch(html, /<b>Evil|‮/);
  const policy = headers.get("content-security-policy") ?? "";
  assert.match(policy, /frame-ancestors 'none'/);
  assert.match(policy, /form-action 'self' https:\/\/agents\.example;/);
  assert.match((await browser.load(asked())).html, /any program on this computer can ask/);
});

test("a request that is not the program's own is shown, and never leads to another site", async () => {
  const evil = "https://evil.example/callback";
  for (const redirect_uri of [
    ...[
      evil,
      "http://127.0.0.1:1@evil.example/callback",
      "http://127.0.0.1:33418/other",
      "https://127.0.0.1:33418/callback",
    ],
    ...["http://localhost:33418/callback", `${redirect}/../other`, `${redirect}#x`, "javascript:alert(1)", ""],
  ]) {
    const { status, headers, html } = await browser.load(asked({ redirect_uri }));
    assert.deepEqual([status, headers.get("location")], [400, null], redirect_uri);
    assert.doesNotMatch(html, /href|http-equiv/);
  }
  assert.equal((await browser.load(`${asked()}&redirect_uri=${encodeURIComponent(evil)}`)).status, 400);
  assert.equal((await browser.load(asked({ client_id: "client_unknown" }))).status, 400);
  for (const uri of [
    "javascript:alert(1)",
    "http://evil.example/x",
    `${redirect}#x`,
    "https://a@evil.example/",
    "data:x",
    1,
  ])
    assert.deepEqual(errorOf(await register({ redirect_uris: [uri] })), [400, "invalid_redirect_uri"], String(uri));
});

test("a program that has not registered is described by the document at its id, and by nothing else", async () => {
  const answering = (id: string, change: object = {}, status = 200): OutgoingOutcome => ({
    outcome: "answered",
    status,
    excerpt: JSON.stringify({ client_id: id, client_name: "Editor", redirect_uris: [redirect], ...change }),
  });
  const load = (id: string) => browser.load(asked({ client_id: id }));
  const good = "https://editor.example/client.json";
  sites[good] = answering(good);
  assert.match((await load(good)).html, /Editor<\/td>.*Described by<\/th><td><b>editor\.example<\/b>/);
  const form = await browser.decide(asked({ client_id: good }));
  const made = await exchange(answerOf(form.headers).get("code") ?? "", { client_id: good });
  assert.equal(made.status, 200, made.text);
  const bad = (name: string) => `https://editor.example/${name}`;
  sites[bad("other-id")] = answering(good);
  sites[bad("redirect")] = answering(bad("redirect"), {}, 302);
  sites[bad("large")] = answering(bad("large"), { more: "x".repeat(5 * 1024) });
  sites[bad("no-json")] = { outcome: "answered", status: 200, excerpt: "<html>" };
  sites[bad("script")] = answering(bad("script"), { redirect_uris: ["javascript:alert(1)"] });
  for (const id of [
    ...Object.keys(sites).filter((each) => each !== good && each.includes("editor")),
    "https://private.example/x",
    "https://editor.example/",
  ])
    assert.equal((await load(id)).status, 400, id);
  const prefersDocuments = async () =>
    (await api.call("GET", "/.well-known/oauth-authorization-server")).body["client_id_metadata_document_supported"];
  await load(good);
  assert.equal(await prefersDocuments(), true);
  const { html } = await load("https://private.example/x");
  assert.match(html, /could not read .*private\.example\/x.*Connect the program again.* reach that address/);
  assert.equal(await prefersDocuments(), false, "where documents cannot be reached, programs register");
  await load(good);
  assert.equal(await prefersDocuments(), true);
  const stranger = consentBrowser(api.baseUrl, "");
  assert.equal(
    (await stranger.load(asked({ client_id: bad("other-id") }))).status,
    200,
    "strangers make it ask no site",
  );
});

test("a client's id that no database takes is as unknown as any other", async () => {
  const [id, form] = ["client_\0", { grant_type: "authorization_code", code: "x" }];
  assert.deepEqual(errorOf(await post("/oauth/token", { ...form, client_id: id })), [401, "invalid_client"]);
  assert.equal((await browser.load(asked({ client_id: id }))).status, 400);
  assert.equal((await browser.load("/session/decide/%00")).status, 404);
  const limited = { name: "x", projects: ["a\0b"] };
  assert.equal((await api.call("POST", "/v1/api-tokens", { token: org.owner, body: limited })).status, 400);
});

test("the port of a program on the person's computer may differ, its host may not", async () => {
  const elsewhere = "http://127.0.0.1:1234/callback";
  assert.equal((await browser.load(asked({ redirect_uri: elsewhere }))).status, 200);
  assert.equal((await browser.load(asked({ redirect_uri: "http://[::1]:33418/callback" }))).status, 400);
});

test("the addresses at which editors and their command lines receive answers are accepted", async () => {
  for (const [registered, used] of [
    ["http://localhost:3118/callback", "http://localhost:50123/callback"],
    ["http://127.0.0.1:33418", "http://127.0.0.1:40000/"],
    ["https://vscode.dev/redirect", "https://vscode.dev/redirect"],
    ["cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback"],
  ] as const) {
    const { body } = await register({ redirect_uris: [registered, "http://[::1]/callback"] });
    const request = asked({ client_id: String(body["client_id"]), redirect_uri: used });
    const { status, headers } = await browser.decide(request);
    assert.deepEqual([status, headers.get("location")?.startsWith(used)], [303, true], used);
    const decided = await exchange(answerOf(headers).get("code") ?? "", {
      ...{ client_id: String(body["client_id"]), redirect_uri: used },
    });
    assert.equal(decided.status, 200, decided.text);
  }
});

test("what is wrong with a request is said with its name and the issuer, and waits for a click", async () => {
  for (const [change, error] of [
    [{ resource: "https://other.example/mcp" }, "invalid_target"],
    [{ code_challenge: "" }, "invalid_request"],
    [{ code_challenge_method: "plain" }, "invalid_request"],
    [{ response_type: "token" }, "unsupported_response_type"],
  ] as const) {
    const { status, headers, html } = await browser.load(asked(change as never));
    assert.deepEqual([status, headers.get("location")], [400, null]);
    const link = new URL((/href="([^"]+)"/.exec(html)?.[1] ?? "").replaceAll("&amp;", "&")).searchParams;
    assert.deepEqual([link.get("error"), link.get("iss"), link.get("state")], [error, api.baseUrl, "s1"]);
  }
  const denied = answerOf((await browser.decide(asked(), { choice: "deny" })).headers);
  assert.deepEqual([denied.get("error"), denied.get("iss"), denied.get("code")], ["access_denied", api.baseUrl, null]);
});

test("a code is exchanged by its own program with its verifier, within a minute", async () => {
  const other = String((await register()).body["client_id"]);
  for (const change of [
    ...[{ code_verifier: "x".repeat(43) }, { code_verifier: "" }, { client_id: other }],
    ...[{ redirect_uri: "http://127.0.0.1:1/callback" }],
  ]) {
    const code = await newCode();
    assert.deepEqual(errorOf(await exchange(code, change as never)), [400, "invalid_grant"]);
    assert.deepEqual(errorOf(await exchange(code)), [400, "invalid_grant"], "and is used up by that");
  }
  const code = await newCode();
  const twice = `grant_type=authorization_code&client_id=${client_id}&code=${code}&code=${code}`;
  assert.deepEqual(errorOf(await post("/oauth/token", twice)), [400, "invalid_request"]);
  await db.updateTable("oauth_grant").set({ expires_at: new Date() }).where("used_at", "is", null).execute();
  assert.deepEqual(errorOf(await exchange(code)), [400, "invalid_grant"]);
  assert.deepEqual(errorOf(await exchange(code, { client_id: "client_unknown" })), [401, "invalid_client"]);
});

test("a code that is used twice, also at once, ends its token", async () => {
  const code = await newCode();
  const token = String((await exchange(code)).body["access_token"]);
  assert.equal((await atTools(token)).status, 200);
  assert.deepEqual(errorOf(await exchange(code)), [400, "invalid_grant"]);
  await eventually(async () => (await atTools(token)).status === 401, "the token has ended");
  const race = await newCode();
  const all = await Promise.all(Array.from({ length: 10 }, () => exchange(race)));
  assert.equal(all.filter(({ status }) => status === 200).length, 1);
});

test("a consent is given on this platform's page by who is signed in", async () => {
  const { html } = await browser.load(asked());
  const form = { choice: "allow", reach: "all", nonce: nonceOf(html) };
  for (const headers of [{ origin: "https://evil.example" }, {}, { origin: "null" }] as Record<string, string>[])
    assert.equal((await browser.post(asked(), form, headers)).status, 403);
  assert.equal((await browser.post(asked({ state: "s2" }), form)).status, 403, "the form is of another request");
  assert.equal((await browser.post(asked(), { ...form, nonce: "x" })).status, 403);
  const stranger = consentBrowser(api.baseUrl, await cookieFor(api.baseUrl, org.member));
  assert.equal((await stranger.post(asked(), form)).status, 403, "the form is of another session");
  const signedOut = consentBrowser(api.baseUrl, "");
  assert.equal((await signedOut.post(asked(), form)).headers.get("location")?.startsWith("/sign-in?next="), true);
  const first = await signedOut.load(asked());
  const again = /url=([^"]+)"/.exec(first.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
  const second = await signedOut.load(again);
  assert.equal(second.headers.get("location"), `/sign-in?next=${encodeURIComponent(asked())}`);
});

test("who may not create tokens connects nothing, and a token in approval mode neither", async () => {
  for (const rights of [{ role: "owner", approval_mode: true }, { scopes: ["projects:read"] }] as const) {
    const { text } = await testToken(db, org.id, rights as never);
    const { status } = await consentBrowser(api.baseUrl, await cookieFor(api.baseUrl, text)).load(asked());
    assert.equal(status, 403);
  }
});

test("an agent's token works at /mcp alone, and never administers", async () => {
  const operator = consentBrowser(api.baseUrl, await cookieFor(api.baseUrl, org.operator));
  const { headers } = await operator.decide(asked(), { choice: "allow", platform_admin: "on" });
  const { body } = await exchange(answerOf(headers).get("code") ?? "");
  const token = String(body["access_token"]);
  assert.match(token, /^berth_t_/);
  assert.equal((await atTools(token)).status, 200);
  assert.equal((await api.call("GET", "/v1/me", { token })).status, 401);
  assert.equal(await cookieFor(api.baseUrl, token), "", "nor does it sign in");
  const calling = (route: string, more: object) =>
    atTools(token, { ...list, method: "tools/call", params: { name: "api_call", arguments: { route, ...more } } });
  const made = await calling("ssh-keys.create", { body: { name: "x", public_key: "ssh-ed25519 AAAA" } });
  assert.match(made.text, /insufficient_scope/, "it makes no credentials");
  assert.match((await calling("platform.get", {})).text, /operator_only|not offered|insufficient_scope/);
});

test("a person limits a program to projects, and to reading", async () => {
  const token = await connect({ choice: "allow", reach: "some", "project.demo": "on", read_only: "on" });
  const calling = (name: string, given: object) =>
    atTools(token, { ...list, method: "tools/call", params: { name, arguments: given } });
  assert.match((await calling("projects", { action: "get", slug: "demo" })).text, /\\"slug\\":\\"demo\\"/);
  assert.match((await calling("projects", { action: "get", slug: "other" })).text, /not_found/);
  assert.match((await calling("projects_change", { action: "delete", slug: "demo" })).text, /isError":true/);
  const missing = await browser.decide(asked(), { choice: "allow", reach: "some" });
  assert.deepEqual([missing.status, /Choose at least one project/.test(missing.html)], [400, true]);
  const foreign = await browser.decide(asked(), { choice: "allow", reach: "some", "project.nothing": "on" });
  assert.deepEqual([foreign.status, foreign.headers.get("location")], [400, null]);
});

test("a connected program is listed with its kind, and revoked within a second; the client then asks anew", async () => {
  const token = await connect();
  const { body } = await api.call("GET", "/v1/api-tokens", { token: org.owner });
  const programs = (body["api_tokens"] as { id: string; name: string; kind: string }[]).filter(
    ({ kind }) => kind === "mcp",
  );
  assert.equal(programs[0]?.name, "Agent");
  assert.equal((await api.call("DELETE", `/v1/api-tokens/${programs[0]?.id}`, { token: org.owner })).status, 204);
  await eventually(async () => (await atTools(token)).status === 401, "the program is refused");
  const challenge = (await atTools(token)).headers.get("www-authenticate") ?? "";
  assert.ok(
    challenge.includes(`resource_metadata="${api.baseUrl}/.well-known/oauth-protected-resource/mcp"`),
    challenge,
  );
  const next = await connect();
  await post("/oauth/revoke", { token: next });
  await eventually(async () => (await atTools(next)).status === 401, "the program has logged out");
  assert.equal((await post("/oauth/revoke", { token: org.owner })).status, 200);
  assert.equal(
    (await api.call("GET", "/v1/me", { token: org.owner })).status,
    200,
    "tokens of people's own are not ended",
  );
});

test("who uses another of this machine's names consents at the platform's own, where passkeys work", async () => {
  const addresses = api.platform.addresses as { controlUrl: string };
  const described = async () =>
    String((await api.call("GET", "/.well-known/oauth-authorization-server")).body["authorization_endpoint"]);
  const before = addresses.controlUrl;
  addresses.controlUrl = api.baseUrl.replace("127.0.0.1", "localhost");
  assert.equal(
    await described(),
    `${addresses.controlUrl}/session/authorize?issuer=${encodeURIComponent(api.baseUrl)}`,
  );
  const named = answerOf((await browser.decide(asked({ issuer: api.baseUrl }))).headers);
  assert.equal(named.get("iss"), api.baseUrl);
  // Another platform's name would make its client send the code, and the proof that it is its own, there.
  const foreign = async (issuer: string) => {
    assert.equal(answerOf((await browser.decide(asked({ issuer }))).headers).get("iss"), api.baseUrl, issuer);
    const sent = answerOf((await browser.decide(asked({ issuer, resource: `${issuer}/mcp` }))).headers);
    assert.equal(sent.get("code"), null, `${issuer} is a foreign platform, for which its client would take this one`);
  };
  for (const issuer of ["https://evil.example", "http://evil.example", `${api.baseUrl}/x`, "http://203.0.113.9"])
    await foreign(issuer);
  const besides = ["http://127.0.0.1:1", "http://localhost:1", api.baseUrl.replace("127.0.0.1", "127.0.0.2")];
  for (const issuer of besides) await foreign(issuer);
  for (const elsewhere of ["http://192.0.2.1:4000", "https://berth.example.com"]) {
    addresses.controlUrl = elsewhere;
    assert.equal(
      await described(),
      `${api.baseUrl}/session/authorize`,
      "only this machine's own name leads to another",
    );
    for (const issuer of besides) await foreign(issuer);
  }
  addresses.controlUrl = before;
});

test("what a person's program does names both", async () => {
  const { body } = await api.call("POST", "/v1/invites", { token: org.owner, body: { role: "owner" } });
  const [, code] = String(body["url"]).split("/join#");
  const own = { origin: api.baseUrl, "x-berth-dashboard": "1" };
  const joined = await api.call("POST", "/session/join", { headers: own, body: { code, name: "Ada" } });
  const ada = consentBrowser(api.baseUrl, joined.headers.get("set-cookie")?.split(";", 1)[0] ?? "");
  const { headers } = await ada.decide(asked(), { choice: "allow" });
  const token = String((await exchange(answerOf(headers).get("code") ?? "")).body["access_token"]);
  const given = { action: "create", slug: "hers", name: "hers" };
  const made = await atTools(token, {
    ...list,
    method: "tools/call",
    params: { name: "projects_change", arguments: given },
  });
  assert.equal(made.status, 200);
  const { activity } = (await api.call("GET", "/v1/activity", { token: org.owner })).body as {
    activity: { action: string; actor: { name: string } }[];
  };
  const actorOf = (action: string) => activity.find((entry) => entry.action === action)?.actor.name;
  assert.deepEqual([actorOf("token.connected"), actorOf("project.created")], ["Ada", "Ada via Agent"]);
  const { members } = (await api.call("GET", "/v1/members", { token: org.owner })).body as {
    members: { id: string }[];
  };
  assert.equal(
    (await api.call("PATCH", `/v1/members/${members[0]?.id}`, { token: org.owner, body: { role: "member" } })).status,
    200,
  );
  const listed = (await api.call("GET", "/v1/api-tokens", { token: org.owner })).body["api_tokens"] as {
    person: string;
    role: string;
  }[];
  assert.deepEqual(
    listed.filter(({ person }) => person === "Ada").map(({ role }) => role),
    ["member"],
    "a demotion reaches it",
  );
  assert.equal((await api.call("DELETE", `/v1/members/${members[0]?.id}`, { token: org.owner })).status, 204);
  await eventually(async () => (await atTools(token)).status === 401, "a removal ends it");
});

test("a person of several organizations chooses the one that a program gets, with its projects and their rights there", async () => {
  const second = await testOrganization(db, "second");
  await testProject(api.platform, second, "secluded");
  const foreign = await testOrganization(db, "third");
  const join = async (by: string, body: object, more: object = {}, cookie = "") => {
    const made = await api.call("POST", "/v1/invites", { token: by, body });
    const code = String(made.body["url"]).split("/join#")[1];
    const headers = { origin: api.baseUrl, "x-berth-dashboard": "1", cookie };
    const joined = await api.call("POST", "/session/join", { headers, body: { code, ...more } });
    return joined.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  };
  const first = await join(org.owner, { projects: ["demo"] }, { name: "Both" });
  const cookie = await join(second.owner, { role: "owner" }, {}, first);
  const both = consentBrowser(api.baseUrl, cookie);
  const { html } = await both.load(asked());
  assert.match(html, /second \(second\)[\s\S]*value="in:acme"/);
  assert.ok(html.includes("secluded") && !html.includes("demo"));
  const other = await both.decide(asked(), { choice: "in:acme", organization: "second" });
  assert.deepEqual([other.status, other.headers.get("location")], [200, null], "it is shown before it is granted");
  assert.match(other.html, /value="in:second"/);
  assert.ok(other.html.includes("demo") && !other.html.includes("secluded"));
  const decided = await both.post(asked(), {
    ...{ choice: "allow", organization: "acme", reach: "all", days: "90", nonce: nonceOf(other.html) },
  });
  const token = String((await exchange(answerOf(decided.headers).get("code") ?? "")).body["access_token"]);
  const calling = async (name: string, given: object) =>
    (await atTools(token, { ...list, method: "tools/call", params: { name, arguments: given } })).text;
  assert.match(await calling("projects", { action: "get", slug: "demo" }), /\\"slug\\":\\"demo\\"/);
  for (const slug of ["secluded", "other"])
    assert.match(await calling("projects", { action: "get", slug }), /not_found/, "a member, limited to a project");
  const listed = (await api.call("GET", "/v1/api-tokens", { token: org.owner })).text;
  assert.ok(listed.includes('"person":"Both"'), listed);
  const line = await connectCommandLine(cookie, { organization: "acme" });
  const me = (await api.call("GET", "/v1/me", { token: line })).body as {
    organization: { slug: string };
    token: { scopes: string[] };
  };
  // Nobody proved to be there, neither in the session's organization nor in the chosen one.
  assert.deepEqual([me.organization.slug, me.token.scopes.includes("tokens:write")], ["acme", false]);
  const wrong = { choice: "allow", organization: foreign.slug };
  for (const choice of [wrong, { ...wrong, choice: `in:${foreign.slug}` }]) {
    const refused = await both.decide(asked(), choice);
    assert.deepEqual([refused.status, refused.headers.get("location")], [403, null]);
  }
  assert.equal((await browser.decide(asked(), { ...wrong, organization: "second" })).status, 403, "a token has one");
});

test("a person's command line, signed in to a browser, is not the person: it joins nothing in their name", async () => {
  const invite = async (token: string) => {
    const made = await api.call("POST", "/v1/invites", { token, body: { role: "owner" } });
    return String(made.body["url"]).split("/join#")[1] ?? "";
  };
  const page = { origin: api.baseUrl, "x-berth-dashboard": "1" };
  const join = (body: object, cookie = "") => api.call("POST", "/session/join", { headers: { ...page, cookie }, body });
  const grace = await join({ code: await invite(org.owner), name: "Grace" });
  const cookie = grace.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  const request = asked({ client_id: "berth-cli", redirect_uri: "http://127.0.0.1:1/callback", resource: api.baseUrl });
  const { headers } = await consentBrowser(api.baseUrl, cookie).decide(request, { choice: "allow", read_only: "on" });
  const change = { client_id: "berth-cli", redirect_uri: "http://127.0.0.1:1/callback" };
  const { body } = await exchange(answerOf(headers).get("code") ?? "", change);
  const text = String(body["access_token"]);
  assert.equal((await api.call("GET", "/v1/me", { token: text })).status, 200);
  const agent = await consentBrowser(api.baseUrl, cookie).decide(asked());
  const tools = String((await exchange(answerOf(agent.headers).get("code") ?? "")).body["access_token"]);
  assert.equal((await atTools(tools)).status, 200);
  const foreign = await testOrganization(db, "foreign");
  const refused = await join({ code: await invite(foreign.owner) }, await cookieFor(api.baseUrl, text));
  assert.deepEqual([refused.status, refused.body["token"]], [400, undefined]);
  const end = (token: string) => api.call("POST", "/v1/me/sessions/end", { token });
  assert.equal((await end(text)).status, 409, "nor signs them out");
  assert.equal((await end(String(grace.body["token"]))).status, 204);
  const isRefused = async () => (await api.call("GET", "/v1/me", { token: text })).status === 401;
  await eventually(isRefused, "to sign out everywhere disconnects it");
  await eventually(async () => (await atTools(tools)).status === 401, "and the agent");
});

/** Connects a command line as a person does who is signed in with this cookie. */
async function connectCommandLine(cookie: string, choice: Record<string, string>): Promise<string> {
  const change = { client_id: "berth-cli", redirect_uri: "http://127.0.0.1:1/callback" };
  const request = asked({ ...change, resource: api.baseUrl });
  const { headers } = await consentBrowser(api.baseUrl, cookie).decide(request, { choice: "allow", ...choice });
  const { status, body, text } = await exchange(answerOf(headers).get("code") ?? "", change);
  assert.equal(status, 200, text);
  return String(body["access_token"]);
}

async function joinAs(name: string) {
  const made = await api.call("POST", "/v1/invites", { token: org.owner, body: { role: "owner" } });
  const code = String(made.body["url"]).split("/join#")[1] ?? "";
  const headers = { origin: api.baseUrl, "x-berth-dashboard": "1" };
  const joined = await api.call("POST", "/session/join", { headers, body: { code, name } });
  return { token: String(joined.body["token"]), cookie: joined.headers.get("set-cookie")?.split(";", 1)[0] ?? "" };
}

const person = async (name: string) =>
  db.selectFrom("person").select("id").where("name", "=", name).executeTakeFirstOrThrow();

test("a session without a proof that the person is there connects no command line that changes people, tokens and keys, and nothing for longer than a week", async () => {
  const { cookie } = await joinAs("Lin");
  const { id } = await person("Lin");
  const admin = { platform_admin: true, scopes: [...scopes] };
  await db.updateTable("api_token").set(admin).where("person_id", "=", id).execute();
  await api.platform.wakeups.send(db, "tokens");
  const rightsOf = async () => {
    const token = await connectCommandLine(cookie, { platform_admin: "on", approval_mode: "off" });
    const me = (await api.call("GET", "/v1/me", { token })).body;
    const { scopes: own } = me["token"] as { scopes: string[] };
    return [me["platform_admin"], own.includes("tokens:write"), own.includes("ssh-keys:write"), own.length > 20];
  };
  const shown = async () =>
    (
      await consentBrowser(api.baseUrl, cookie).load(
        asked({ client_id: "berth-cli", redirect_uri: "http://127.0.0.1:1/callback", resource: api.baseUrl }),
      )
    ).html;
  assert.match(await shown(), /href="\/sign-in\?next=%2Fsession%2Fauthorize%3F[^"]+">sign in again<\/a> first/);
  assert.deepEqual(await rightsOf(), [false, false, false, true]);
  const agent = async () => {
    const page = await consentBrowser(api.baseUrl, cookie).load(asked());
    const { headers } = await consentBrowser(api.baseUrl, cookie).decide(asked());
    const { body } = await exchange(answerOf(headers).get("code") ?? "");
    const days = Math.round(Number(body["expires_in"]) / 86_400);
    return [days, page.html.includes("For longer, <a href")];
  };
  assert.deepEqual(await agent(), [7, true], "nor an agent that stays for longer than the session");
  await db.updateTable("session").set({ fresh_at: new Date() }).where("person_id", "=", id).execute();
  await api.platform.wakeups.send(db, "tokens");
  await eventually(async () => !(await shown()).includes("sign in again"), "the session is fresh");
  assert.deepEqual(await rightsOf(), [true, true, true, true]);
  assert.deepEqual(await agent(), [90, false]);
});

test("signing out everywhere ends also what a person's command line has connected", async () => {
  const { token, cookie } = await joinAs("Kim");
  const { id } = await person("Kim");
  await db.updateTable("session").set({ fresh_at: new Date() }).where("person_id", "=", id).execute();
  await api.platform.wakeups.send(db, "tokens");
  const first = await connectCommandLine(cookie, { approval_mode: "off" });
  const second = await connectCommandLine(await cookieFor(api.baseUrl, first), { approval_mode: "off" });
  const third = await connectCommandLine(cookie, { approval_mode: "on" });
  const asked = await api.call("DELETE", "/v1/projects/other", { token: third });
  const { id: approval } = asked.body["approval"] as { id: string };
  assert.equal((await api.call("GET", "/v1/me", { token: second })).status, 200);
  assert.equal((await api.call("POST", "/v1/me/sessions/end", { token })).status, 204);
  const left = await api.call("GET", `/v1/approvals/${approval}`, { token: org.owner });
  assert.equal(left.body["status"], "expired", "what its agent had asked for is not asked any more");
  for (const each of [first, second])
    await eventually(async () => (await api.call("GET", "/v1/me", { token: each })).status === 401, "it ends");
});

test("a person who was disabled in this moment connects nothing", async () => {
  const made = await api.call("POST", "/v1/invites", { token: org.owner, body: {} });
  const headers = { origin: api.baseUrl, "x-berth-dashboard": "1" };
  const body = { code: String(made.body["url"]).split("/join#")[1], name: "Mallory" };
  const joined = await api.call("POST", "/session/join", { headers, body });
  const mallory = consentBrowser(api.baseUrl, joined.headers.get("set-cookie")?.split(";", 1)[0] ?? "");
  assert.equal((await mallory.load(asked())).status, 200);
  // This update wakes no cache, so the consent comes before it is known.
  await db.updateTable("person").set({ disabled_at: new Date() }).where("name", "=", "Mallory").execute();
  const { status, headers: answered } = await mallory.decide(asked());
  assert.deepEqual([status, answered.get("location")], [403, null]);
});

test("parallel agents share one token, which works for ninety days without a new consent", async () => {
  const { body } = await exchange(await newCode());
  const token = String(body["access_token"]);
  assert.ok(Number(body["expires_in"]) > 89 * 86_400);
  assert.equal(body["refresh_token"], undefined);
  const all = await Promise.all(Array.from({ length: 5 }, () => atTools(token)));
  assert.deepEqual(new Set(all.map(({ status }) => status)), new Set([200]));
});

test("an address registers a limited number of programs in an hour", async () => {
  const made = [];
  for (let count = 0; count < 21; count += 1) made.push(errorOf(await register()));
  assert.deepEqual(made.at(-1), [429, "slow_down"]);
});
