import assert from "node:assert/strict";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { after, test } from "node:test";
import { sql } from "kysely";
import { readEnvironment, type Environment } from "../src/cli/environment.ts";
import { runCommandLine } from "../src/cli/run-command-line.ts";
import { limits } from "../src/contract/limits.ts";
import { createHttpServer } from "../src/http/server.ts";
import { silentLog } from "../src/kit/log.ts";
import { cliUser, type CliUser } from "./support/cli.ts";
import { consentBrowser, cookieFor, nonceOf } from "./support/consent.ts";
import { eventually, guardMs } from "./support/eventually.ts";
import { sharedApi, testOrganization, testToken } from "./support/test-platform.ts";

const api = await sharedApi();
const { db } = api.database;
(api.platform.addresses as { controlUrl: string }).controlUrl = api.baseUrl;
const org = await testOrganization(db, "acme");
const browser = consentBrowser(api.baseUrl, await cookieFor(api.baseUrl, org.owner));

/** Runs the CLI at a terminal, where `display` shows a browser; `open` gets the address that the CLI opens. */
async function atTerminal(user: CliUser, args: string[], open?: (url: string) => Promise<unknown>) {
  const [stdin, stdout, stderr] = [0, 1, 2].map(() => Object.assign(new PassThrough(), { isTTY: true }));
  let printed = "";
  for (const stream of [stdout, stderr]) stream?.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  const [bin, opened] = [join(user.home, "bin"), join(user.home, "opened")];
  await mkdir(bin, { recursive: true });
  await rm(opened, { force: true });
  await writeFile(join(bin, "xdg-open"), `#!/bin/sh\nprintf %s "$1" > '${opened}'\n`);
  await chmod(join(bin, "xdg-open"), 0o755);
  const env = { ...user.env, NO_COLOR: "1", PATH: `${bin}:${user.env["PATH"]}`, ...(open && { DISPLAY: ":0" }) };
  const environment = { ...readEnvironment(env), cwd: user.home, stdin, stdout, stderr } as unknown as Environment;
  const exited = runCommandLine(args, environment, AbortSignal.timeout(guardMs));
  if (open !== undefined) {
    const url = await eventually(
      async () => (await readFile(opened, "utf8").catch(() => "")) || undefined,
      "a browser opens",
    );
    await open(url);
  }
  return { exited, printed: () => printed };
}

const tokenOf = async (user: CliUser) =>
  (
    Object.values((JSON.parse(await readFile(user.configFile, "utf8")) as { contexts: object }).contexts)[0] as {
      token: string;
    }
  ).token;
const statusOf = async (token: string) => (await api.call("GET", "/v1/me", { token })).status;

test("login opens a browser, where a person allows it, and logout ends the token", async () => {
  await using user = await cliUser();
  let where = new URL(api.baseUrl);
  const { exited, printed } = await atTerminal(user, ["login", api.baseUrl], async (url) => {
    where = new URL(new URL(url).searchParams.get("redirect_uri") ?? "");
    assert.equal(where.hostname, "127.0.0.1");
    for (const other of ["/favicon.ico", "/callback", "/callback?state=wrong&code=x"])
      assert.equal((await fetch(new URL(other, where))).status, 404, "others' requests end nothing");
    const { html } = await browser.load(url);
    assert.ok(html.includes(`berth on ${hostname()}`));
    const answer = (await browser.decide(url, { choice: "allow" })).headers.get("location") ?? "";
    assert.match(await (await fetch(answer)).text(), /close this page/);
  });
  assert.equal(await exited, 0, printed());
  assert.match(printed(), /Logged in to .* as owner of acme/);
  await assert.rejects(fetch(where), "the CLI listens no longer");
  const token = await tokenOf(user);
  assert.match(token, /^berth_o_/);
  assert.ok(!printed().includes(token));
  const listed = await user.berth(["tokens"]);
  assert.match(listed.stdout, new RegExp(`berth on ${hostname()}.*cli`));
  assert.equal((await user.berth(["logout"])).exitCode, 0);
  await eventually(async () => (await statusOf(token)) === 401, "the token has ended");
});

test("a login that the person denies, or that another platform answers, keeps nothing", async () => {
  for (const answered of [
    async (url: string) => (await browser.decide(url, { choice: "deny" })).headers.get("location") ?? "",
    async (url: string) => {
      const location = new URL((await browser.decide(url)).headers.get("location") ?? "");
      location.searchParams.set("iss", "https://evil.example");
      return location.href;
    },
  ]) {
    await using user = await cliUser();
    const { exited } = await atTerminal(user, ["login", api.baseUrl], async (url) => fetch(await answered(url)));
    assert.equal(await exited, 3);
    await assert.rejects(readFile(user.configFile), { code: "ENOENT" });
  }
});

/** A platform elsewhere that sends people to this one's pages; `issuer` is what it calls itself, by default its own address. */
async function platformOf(page: string, issuer?: string) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    const said = { issuer: issuer ?? url, authorization_endpoint: page, verification_uri: page };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ ...said, device_code: "x", user_code: "BCDF-GHJK", interval: 1, expires_in: 5 }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, asked, [Symbol.dispose]: () => void server.close() };
}

for (const issuer of [api.baseUrl, undefined])
  test(`a platform that sends people to the page of another one${issuer === undefined ? "" : ", as which it poses,"} gets none of its tokens`, async () => {
    using hostile = await platformOf(`${api.baseUrl}/session/authorize`, issuer);
    await using user = await cliUser();
    const seeing = { ...user, env: { ...user.env, DISPLAY: ":0" } };
    const { exited, printed } = await atTerminal(seeing, ["login", hostile.url]);
    let isOver = false;
    void exited.then(() => (isOver = true));
    const opened = () => readFile(join(user.home, "opened"), "utf8").catch(() => isOver && "nothing");
    const page = await eventually(opened, "a page opens, or the login ends");
    // A person who has a session there allows it.
    if (page !== "nothing") await fetch((await browser.decide(page)).headers.get("location") ?? "");
    assert.equal(await exited, 3, printed());
    assert.match(printed(), /asks for a login at another platform/);
    const { exitCode, stderr } = await user.berth(["login", hostile.url, "--device"]);
    assert.equal(exitCode, 3);
    assert.match(stderr, /asks for a login at another platform/);
    assert.ok(!hostile.asked.includes("/oauth/token"), String(hostile.asked));
  });

test("logging in again ends the token that it replaces, and logout never ends a token of another kind", async () => {
  await using user = await cliUser();
  const login = async () => {
    const { exited } = await atTerminal(user, ["login", api.baseUrl], async (url) =>
      fetch((await browser.decide(url)).headers.get("location") ?? ""),
    );
    assert.equal(await exited, 0);
    return tokenOf(user);
  };
  const first = await login();
  await login();
  await eventually(async () => (await statusOf(first)) === 401, "the first token has ended");
  await user.berth(["login", api.baseUrl, "--token-file", "-"], { stdin: org.member });
  await user.berth(["logout"]);
  assert.equal(await statusOf(org.member), 200);
});

const device = (form: Record<string, string> = { client_id: "berth-cli", device_name: "laptop" }) =>
  post("/oauth/device", form);
const post = (path: string, form: Record<string, string>) =>
  api.call("POST", path, {
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams(form).toString(),
  });
const poll = async (device_code: string) => {
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const { body } = await post("/oauth/token", { grant_type, device_code, client_id: "berth-cli" });
  return body["error"] ?? String(body["access_token"]).slice(0, 8);
};
const typing = async (user_code: string, who = browser) => {
  const nonce = nonceOf((await who.load("/session/device")).html);
  return who.post("/session/device", { user_code, choice: "open", nonce });
};
const deciding = (user_code: string, html: string, choice = "allow", who = browser) =>
  who.post("/session/device", { user_code, choice, reach: "all", days: "90", nonce: nonceOf(html) });

test("without a display, login shows a code that a person types, however they separate it", async () => {
  await using user = await cliUser();
  const { exited, printed } = await atTerminal(user, ["login", api.baseUrl]);
  const code = await eventually(async () => /\b[A-Z]{4}-[A-Z]{4}\b/.exec(printed())?.[0], "a code is shown");
  assert.ok(printed().includes(`${api.baseUrl}/session/device`));
  const typed = code.toLowerCase().replace("-", " ");
  const { html } = await typing(typed);
  assert.ok(html.includes(`berth on ${hostname()}`), html);
  assert.equal((await deciding(typed, html)).status, 200);
  assert.equal(await exited, 0, printed());
});

test("a code belongs to who typed it first, is decided once, and its program fetches the token once", async () => {
  const { body } = await device();
  const [user_code, device_code] = [String(body["user_code"]), String(body["device_code"])];
  assert.equal(await poll(device_code), "authorization_pending");
  assert.equal(await poll(device_code), "slow_down");
  const other = consentBrowser(api.baseUrl, await cookieFor(api.baseUrl, org.operator));
  const unopened = await other.post("/session/device", { user_code, choice: "allow", reach: "all", nonce: "x" });
  assert.equal(unopened.status, 403);
  const { html } = await typing(user_code);
  assert.equal((await typing(user_code, other)).status, 404);
  assert.equal((await deciding(user_code, html, "allow", other)).status, 403);
  assert.equal((await deciding(user_code, html)).status, 200);
  assert.equal((await deciding(user_code, html, "deny")).status, 404);
  assert.equal(await poll(device_code), "berth_o_");
  assert.equal(await poll(device_code), "invalid_grant");
});

test("a person of several organizations chooses the one of a code", async () => {
  const other = await testOrganization(db, "beyond");
  const page = { origin: api.baseUrl, "x-berth-dashboard": "1" };
  let cookie = "";
  for (const [by, more] of [
    [org.owner, { name: "Both" }],
    [other.owner, {}],
  ] as const) {
    const made = await api.call("POST", "/v1/invites", { token: by, body: { role: "owner" } });
    const body = { code: String(made.body["url"]).split("/join#")[1], ...more };
    const joined = await api.call("POST", "/session/join", { headers: { ...page, cookie }, body });
    cookie = joined.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
  }
  const both = consentBrowser(api.baseUrl, cookie);
  const { body } = await device();
  const user_code = String(body["user_code"]);
  const { html } = await typing(user_code, both);
  const form = { user_code, reach: "all", days: "90" };
  const chosen = await both.post("/session/device", { ...form, choice: "in:acme", nonce: nonceOf(html) });
  assert.match(chosen.html, /name="organization" value="acme"/);
  const allowed = { ...form, choice: "allow", organization: "acme", nonce: nonceOf(chosen.html) };
  assert.equal((await both.post("/session/device", allowed)).status, 200);
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const given = { grant_type, device_code: String(body["device_code"]), client_id: "berth-cli" };
  const token = String((await post("/oauth/token", given)).body["access_token"]);
  const { organization } = (await api.call("GET", "/v1/me", { token })).body as { organization: { slug: string } };
  assert.equal(organization.slug, "acme");
  const made = await api.call("POST", "/v1/projects", { token, body: { slug: "typed", name: "Typed" } });
  assert.equal(made.status, 201, made.text);
  const { activity } = (await api.call("GET", "/v1/activity", { token: org.owner })).body as {
    activity: { action: string; actor: { name: string } }[];
  };
  const creator = activity.find(({ action }) => action === "project.created")?.actor.name;
  assert.equal(creator, "Both via berth on laptop", "the activity names the person and the program");
});

test("a code that was denied or has expired gives nothing, and only the command line may ask", async () => {
  const { body: denied } = await device();
  const { html } = await typing(String(denied["user_code"]));
  await deciding(String(denied["user_code"]), html, "deny");
  assert.equal(await poll(String(denied["device_code"])), "access_denied");
  const { body: late } = await device();
  await db.updateTable("oauth_grant").set({ expires_at: new Date() }).where("used_at", "is", null).execute();
  assert.equal((await typing(String(late["user_code"]))).status, 404);
  assert.equal(await poll(String(late["device_code"])), "expired_token");
  assert.equal((await device({ client_id: "client_other" })).body["error"], "unauthorized_client");
});

test("an address guesses ten codes in a minute, at whichever control planes", async () => {
  const beside = createHttpServer({ platform: api.platform, log: silentLog, checks: [], limits: {} });
  after(() => beside.close());
  const { port } = await beside.listen({ host: "127.0.0.1", port: 0 });
  const cookie = await cookieFor(api.baseUrl, org.owner);
  const both = [browser, consentBrowser(`http://127.0.0.1:${port}`, cookie)] as const;
  await forgetGuesses();
  const guess = async (by: (typeof both)[0]) => (await typing("BBBB-BBBB", by)).status;
  for (let round = 0; round < 5; round += 1)
    assert.deepEqual(await Promise.all(both.map(guess)), [404, 404], "each guess counts once");
  for (const by of both) assert.equal(await guess(by), 429);
  await forgetGuesses();
  assert.equal(await guess(browser), 404);
});

/** Ends the minute of those who typed codes. */
const forgetGuesses = () => db.deleteFrom("used_challenge").execute();

/** Joins as a person by an invitation with these rights; returns their browser. */
async function personWith(name: string, rights: object) {
  const made = await api.call("POST", "/v1/invites", { token: org.owner, body: rights });
  const body = { code: String(made.body["url"]).split("/join#")[1], name };
  const headers = { origin: api.baseUrl, "x-berth-dashboard": "1" };
  const joined = await api.call("POST", "/session/join", { headers, body });
  assert.equal(joined.status, 200, joined.text);
  return consentBrowser(api.baseUrl, joined.headers.get("set-cookie")?.split(";", 1)[0] ?? "");
}

const codesOf = ({ body }: Awaited<ReturnType<typeof device>>) => ({
  user_code: String(body["user_code"]),
  device_code: String(body["device_code"]),
});
const commandLines = async () =>
  (await db.selectFrom("api_token").select("id").where("kind", "=", "cli").execute()).length;

test("a code that was denied, or has expired since a person opened it, is allowed by nobody any more", async () => {
  await forgetGuesses();
  const before = await commandLines();
  const denied = codesOf(await device());
  const opened = await typing(denied.user_code);
  assert.equal((await deciding(denied.user_code, opened.html, "deny")).status, 200);
  assert.equal((await deciding(denied.user_code, opened.html)).status, 404, "the form that denied it");
  assert.equal((await typing(denied.user_code)).status, 404);
  for (const _ of [1, 2]) assert.equal(await poll(denied.device_code), "access_denied");
  const late = codesOf(await device());
  const { html } = await typing(late.user_code);
  const ended = { expires_at: new Date(), polled_at: null };
  await db.updateTable("oauth_grant").set(ended).where("used_at", "is", null).execute();
  assert.equal((await deciding(late.user_code, html)).status, 404);
  assert.equal(await poll(late.device_code), "expired_token");
  const unfetched = codesOf(await device());
  await deciding(unfetched.user_code, (await typing(unfetched.user_code)).html);
  await db.updateTable("oauth_grant").set(ended).where("used_at", "is", null).execute();
  assert.equal(await poll(unfetched.device_code), "expired_token");
  assert.equal(await commandLines(), before + 1);
  await db
    .updateTable("oauth_grant")
    .set({ expires_at: new Date(Date.now() + 60_000) })
    .execute();
  await db.updateTable("api_token").set({ revoked_at: new Date() }).where("kind", "=", "cli").execute();
  assert.equal(await poll(unfetched.device_code), "access_denied", "its token was disconnected before it was fetched");
});

test("a program that asks sooner than it may is told to slow down, and goes on when it does", async () => {
  const { device_code } = codesOf(await device());
  const askedAt = (seconds: number) =>
    db
      .updateTable("oauth_grant")
      .set({ polled_at: new Date(Date.now() + seconds * 1000) })
      .where("used_at", "is", null)
      .execute();
  await askedAt(60);
  assert.equal(await poll(device_code), "slow_down");
  await askedAt(-60);
  assert.equal(await poll(device_code), "authorization_pending");
});

test("a code is decided only by a form that its own opening made, and fetched only as what it is", async () => {
  await forgetGuesses();
  const { user_code, device_code } = codesOf(await device());
  const mallory = await personWith("Mallory", { role: "owner" });
  const nonce = nonceOf((await mallory.load("/session/device")).html);
  for (const choice of ["allow", "deny"]) {
    const form = { user_code, choice, reach: "all", days: "90", nonce };
    assert.equal((await mallory.post("/session/device", form)).status, 403, "no guess goes past the count");
  }
  assert.equal(await poll(device_code), "authorization_pending");
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  for (const form of [
    { grant_type, device_code, client_id: "client_other" },
    { grant_type, device_code: user_code, client_id: "berth-cli" },
    { grant_type: "authorization_code", code: device_code, client_id: "berth-cli", code_verifier: "x".repeat(43) },
  ] as Record<string, string>[])
    assert.equal((await post("/oauth/token", form)).body["error"], "invalid_grant", JSON.stringify(form));
  const { html } = await typing(user_code);
  assert.equal((await mallory.post("/session/device", { user_code, choice: "open", nonce })).status, 404);
  assert.equal((await deciding(user_code, html, "deny", mallory)).status, 403, "another person denies it no more");
  assert.equal((await deciding(user_code, html)).status, 200);
  const all = await Promise.all(Array.from({ length: 10 }, () => poll(device_code)));
  assert.deepEqual([all.filter((each) => each === "berth_o_").length, new Set(all).size], [1, 2]);
  assert.ok(all.includes("invalid_grant"));
});

test("who is limited to projects, or may connect nothing, allows no more than that", async () => {
  await forgetGuesses();
  for (const slug of ["reached", "secluded"])
    assert.equal(
      (await api.call("POST", "/v1/projects", { token: org.owner, body: { slug, name: slug } })).status,
      201,
    );
  const limited = await personWith("Lin", { projects: ["reached"] });
  const { user_code, device_code } = codesOf(await device());
  const { html } = await typing(user_code, limited);
  assert.ok(html.includes("project.reached") && !html.includes("secluded"));
  const form = { user_code, choice: "allow", days: "90", nonce: nonceOf(html), platform_admin: "on" };
  const more = await limited.post("/session/device", { ...form, reach: "some", "project.secluded": "on" });
  assert.equal(more.status, 400, more.html);
  assert.equal((await limited.post("/session/device", { ...form, reach: "all" })).status, 200);
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const { body } = await post("/oauth/token", { grant_type, device_code, client_id: "berth-cli" });
  const token = String(body["access_token"]);
  const me = (await api.call("GET", "/v1/me", { token })).body as { role: string; token: { projects: string[] } };
  assert.deepEqual([me.role, me.token.projects], ["member", ["reached"]]);
  assert.equal((await api.call("GET", "/v1/projects/secluded", { token })).status, 404);
  const agent = await testToken(db, org.id, { role: "owner", approval_mode: true });
  const careful = consentBrowser(api.baseUrl, await cookieFor(api.baseUrl, agent.text));
  const other = codesOf(await device());
  assert.equal((await typing(other.user_code, careful)).status, 403);
  assert.equal(await poll(other.device_code), "authorization_pending");
});

test("when ten thousand programs wait, the address with the most of them loses the oldest, and nobody else is refused", async () => {
  const { body: known } = await device();
  await sql`insert into oauth_grant (hash, user_code_hash, client_id, address, opened_by, expires_at)
    select sha256(('waits ' || n)::bytea), sha256(('typed ' || n)::bytea), 'berth-cli', '192.0.2.' || least(n / 1111, 7),
      case when n % 1111 = 0 then 'per_who_typed_it' end, now() + interval '5 minutes' + n * interval '1 millisecond'
    from generate_series(0, ${limits.oauth_devices_waiting - 1}) n`.execute(db);
  const over = async () =>
    (
      await sql<{ address: string; count: number }>`select address, count(*)::integer as count from oauth_grant
        where address like '192.0.2.%' and expires_at <= now() group by address`.execute(db)
    ).rows;
  const { status, body } = await device();
  assert.equal(status, 200);
  const [first, ...rest] = await over();
  assert.deepEqual([first?.address, rest], ["192.0.2.7", []], "the largest group, which has two shares");
  await device();
  assert.equal((await over())[0]?.count, (first?.count ?? 0) + 1);
  for (const each of [known, body]) assert.equal(await poll(String(each["device_code"])), "authorization_pending");
});
