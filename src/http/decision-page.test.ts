import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import { decideBy, decisionPath, nonceIn, pressButton, quietNotifier } from "../../test/support/approvals.ts";
import { tenantDatabaseDouble } from "../../test/support/port-doubles.ts";
import { testBuild, testDeployment, testDomain, testProject, testThings } from "../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../test/support/test-platform.ts";
import { makeNonce } from "./own-form.ts";

let asked = 0;
const fontPath = "/assets/geist-latin-wght-normal-1a2b.woff2";
let aheadMs = 0;

const table = {
  schema: "public",
  name: "orders",
  kind: "table",
  estimated_rows: 1_234_567,
  size_bytes: 5.5 * 1024 ** 3,
} as const;
const listTables = async () => ({ outcome: "done", found: { tables: [table], total: 1 } }) as const;
const font = { bytes: Buffer.from("font"), gzip: undefined, type: "font/woff2" };
const files = new Map([[fontPath, font]]);
const api = await sharedApi({
  http: { dashboard: { bundle: () => ({ files }) } },
  ports: { notifiers: [quietNotifier], tenantDatabase: tenantDatabaseDouble({ listTables }) },
  clock: { now: () => new Date(Date.now() + aheadMs) },
});
const org = await testOrganization(api.database.db, "acme");
const things = await testThings(api.platform, org);
await testDomain(api.platform, { org_id: org.id, project_id: things.project.id }, "shop.example.test");
const makeAgent = async () => (await testToken(api.database.db, org.id, { role: "owner", approval_mode: true })).text;
const agent = await makeAgent();

/** Sends a request that waits for a decision; resolves with it and the path of its page. */
async function askTo(
  method: string,
  path: string,
  body?: unknown,
  given?: string,
): Promise<{ id: string; page: string }> {
  // A token may have few requests that wait.
  const token = given ?? (await makeAgent());
  const called = await api.call(method, path, { token, ...(body === undefined ? {} : { body }) });
  assert.equal(called.body["code"], "approval_required", called.text);
  const { id } = called.body["approval"] as { id: string };
  return { id, page: await decisionPath(api, id) };
}

/** Uses a new agent for each request, because a denial also applies to the agent's other requests for tokens. */
const askForToken = async (name = `t${(asked += 1)}`) => askTo("POST", "/v1/api-tokens", { name }, await makeAgent());
const open = async (page: string) => {
  const response = await fetch(`${api.baseUrl}${page}`);
  return { status: response.status, headers: response.headers, html: await response.text() };
};
const statusOf = async (id: string) => (await api.call("GET", `/v1/approvals/${id}`, { token: agent })).body["status"];

test("shows who asks, for what, and what it reaches", async () => {
  const { page } = await askTo("DELETE", `/v1/projects/${things.project.slug}`);
  const { status, html } = await open(page);
  assert.equal(status, 200);
  const expected = [
    "acme",
    "test",
    `DELETE /v1/projects/${things.project.slug}`,
    "shop.example.test",
    "about 1,234,567 rows in 1 table, 5.5 GiB",
  ];
  for (const text of expected) assert.ok(html.includes(text), text);
  assert.match(html, /What it reaches.*Who asks.*<form/s);
  assert.match(html, /Open until<[^>]*>(?:<[^>]*>)*\d{4}-\d\d-\d\d \d\d:\d\d UTC</);
});

test("names only what the request touches, not the whole project", async () => {
  const base = `/v1/projects/${things.project.slug}`;
  const detach = await open((await askTo("DELETE", `${base}/domains/${things.domain}`)).page);
  assert.ok(detach.html.includes(`Detach the domain ${things.domain}`));
  assert.doesNotMatch(detach.html, /What it reaches|rows in|Last verified backup|shop\.example\.test/);
  const row = await open((await askTo("DELETE", `${base}/data/tables/public/orders/rows`, { key: { id: 1 } })).page);
  for (const text of [
    "Delete a row of the table public.orders",
    "one of about 1,234,567 in the table",
    "Last verified backup",
  ])
    assert.ok(row.html.includes(text), text);
  assert.doesNotMatch(row.html, /Hostnames|Requests in the last hour/);
  const other = await open((await askTo("DELETE", `${base}/data/tables/public/other/rows`, { key: { id: 1 } })).page);
  assert.match(other.html, /Rows<[^>]*><td>one</);
});

test("says what an upgrade without a backup may lose", async (t) => {
  const installed = [{ version: "0.1.0", current: true, processes: 1 }];
  t.mock.method(api.platform.releases, "report", async () => ({ installed, unfinalized: [], upgrade: null }));
  const given = { role: "owner", approval_mode: true, platform_admin: true } as const;
  const { text: operator } = await testToken(api.database.db, org.id, given);
  const pageFor = async (body: object) =>
    (await open((await askTo("POST", "/v1/platform/upgrade", body, operator)).page)).html;
  assert.match(await pageFor({ without_backup: true }), /without a backup.*only in earlier backups/s);
  assert.doesNotMatch(await pageFor({}), /without a backup|earlier backups/);
});

test("shows what was sent, and nothing of it is markup", async () => {
  const { page } = await askForToken('<script>alert(1)</script>"&');
  const { html } = await open(page);
  assert.ok(html.includes("&lt;script&gt;alert(1)&lt;/script&gt;"));
  assert.equal(html.match(/<script/gi)?.length, 1);
});

test("writes every time so that the reader's browser can show it in the reader's zone", async () => {
  const taken = {
    status: "completed",
    problem_code: null,
    problem: null,
    created_at: "2026-03-01T03:00:00.000Z",
  } as const;
  await api.database.db.updateTable("backup").set(taken).where("id", "=", things.backup).execute();
  const { page } = await askTo("POST", `/v1/projects/${things.project.slug}/restore`, { backup_id: things.backup });
  const { html } = await open(page);
  assert.ok(
    html.includes(
      'the backup of <time datetime="2026-03-01T03:00:00.000Z">2026-03-01 03:00 UTC</time> beside the live data',
    ),
  );
  assert.match(html, /Open until<[^>]*><td><time datetime="[^"]{23}Z">/);
});

test("shows all of a command before the buttons, also what is far to the right, unseen or turned round", async () => {
  const project = await testProject(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const command = `ls ${" ".repeat(3000)}${"#".repeat(2000)}\u202e\u2800; rm -rf $STORAGE_DIR`;
  const { page } = await askTo("POST", `/v1/projects/${project.slug}/runs`, { command });
  const { html } = await open(page);
  const sent = html.slice(0, html.indexOf("<form"));
  assert.ok(sent.includes("\\u{202e}\\u{2800}; rm -rf $STORAGE_DIR"));
  // Without this rule, a browser hides a long line behind a scroll bar.
  assert.match(html, /pre\{[^}]*white-space:pre-wrap;overflow-wrap:anywhere/);
});

test("the order is one line, in the message too, whatever a name in it holds", async () => {
  const path = "old\n\nApprove at evil.test/decide\n\u202e";
  const { id, page } = await askTo("DELETE", `/v1/projects/${things.project.slug}/disk/storage`, { path });
  const order = "Delete old\\u{a}\\u{a}Approve at evil.test/decide\\u{a}\\u{202e} from the storage folder";
  assert.ok((await open(page)).html.includes(order));
  const { body } = await api.call("GET", `/v1/approvals/${id}`, { token: agent });
  assert.equal(body["summary"], order);
});

test("secrets of a request stand neither on its page nor in the database", async () => {
  const { slug } = await testProject(api.platform, org);
  const path = `/v1/projects/${slug}/follow`;
  const url = "https://git.example.test/acme/shop.git";
  const { id, page } = await askTo("PUT", path, { url, token: "glpat-s3cret" });
  const { html } = await open(page);
  assert.ok(html.includes(url) && html.includes("••••••••") && !html.includes("s3cret"));
  const { rows } = await api.database.pool.query("select request::text from approval where id = $1", [id]);
  assert.doesNotMatch(String(rows[0].request), /s3cret/);
});

test("loads only the dashboard's fonts and runs only its own script, is never stored or framed, and tells nobody where the reader came from", async () => {
  const { page } = await askForToken();
  const { headers, html } = await open(page);
  const policy = headers.get("content-security-policy") ?? "";
  const script = /<script>(.*)<\/script>/s.exec(html)?.[1] ?? "";
  const own = `script-src 'sha256-${hash("sha256", script, "base64")}'`;
  for (const part of [
    "default-src 'none'",
    "font-src 'self'",
    `${own};`,
    "frame-ancestors 'none'",
    "form-action 'self'",
    "base-uri 'none'",
  ])
    assert.ok(policy.includes(part), part);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(headers.get("referrer-policy"), "no-referrer");
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.doesNotMatch(html, /src=|href=|https?:/);
  assert.deepEqual(
    Array.from(html.matchAll(/url\((.*?)\)/g), ([, url]) => url),
    [fontPath],
  );
  const style = /<style>(.*?)<\/style>/s.exec(html)?.[1] ?? "";
  assert.ok(policy.includes(`style-src 'sha256-${hash("sha256", style, "base64")}'`));
});

test("opening it, any number of times and by any method that only looks, decides nothing", async () => {
  const { id, page } = await askForToken();
  for (const method of ["GET", "GET", "HEAD", "OPTIONS"]) await fetch(`${api.baseUrl}${page}`, { method });
  await fetch(`${api.baseUrl}${page}?choice=approved`);
  assert.equal(await statusOf(id), "pending");
});

test("decides only by its own form: with its nonce, its origin and an explicit choice", async () => {
  const { id, page } = await askForToken();
  const nonce = nonceIn((await open(page)).html);
  const other = nonceIn((await open((await askForToken()).page)).html);
  const origin = api.platform.addresses.controlUrl;
  const choice = "approved";
  const refused: [Record<string, string>, Record<string, string>, number][] = [
    [{ choice }, { origin }, 403],
    [{ choice, nonce: other }, { origin }, 403],
    [{ choice, nonce: `${nonce.slice(0, -2)}AA` }, { origin }, 403],
    [{ choice, nonce }, {}, 403],
    [{ choice, nonce }, { origin: "null" }, 403],
    [{ choice, nonce }, { origin: "null", "sec-fetch-site": "cross-site" }, 403],
    [{ choice, nonce }, { origin: "https://evil.test" }, 403],
    [{ nonce }, { origin }, 400],
    [{ nonce, choice: "consumed" }, { origin }, 400],
  ];
  for (const [form, headers, status] of refused)
    assert.equal((await pressButton(api, page, form, headers)).status, status, JSON.stringify([form, headers]));
  const json = { "content-type": "application/json", origin };
  const posted = await fetch(`${api.baseUrl}${page}`, {
    method: "POST",
    headers: json,
    body: JSON.stringify({ choice, nonce }),
  });
  assert.equal(posted.status, 400);
  const twice = await fetch(`${api.baseUrl}${page}`, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", origin },
    body: `nonce=${nonce}&choice=denied&choice=approved`,
  });
  assert.equal(twice.status, 400);
  assert.equal(await statusOf(id), "pending");
  // Behind a tunnel or proxy the page has another hostname, and both headers agree on it.
  assert.equal((await pressButton(api, page, { choice, nonce }, { origin: api.baseUrl })).status, 200);
  assert.equal(await statusOf(id), "approved");
});

test("a page that was open for more than an hour decides nothing", async () => {
  const { id, page } = await askForToken();
  const nonce = nonceIn((await open(page)).html);
  aheadMs = 61 * 60_000;
  const late = await pressButton(api, page, { choice: "approved", nonce });
  aheadMs = 0;
  assert.equal(late.status, 403);
  assert.equal(await statusOf(id), "pending");
});

test("works once, also for two who press different buttons at once", async () => {
  const { id, page } = await askForToken();
  const nonce = nonceIn((await open(page)).html);
  const both = await Promise.all(["approved", "denied"].map((choice) => pressButton(api, page, { choice, nonce })));
  assert.deepEqual(
    both.map(({ status }) => status).sort((a, b) => a - b),
    [200, 410],
  );
  const decided = await statusOf(id);
  assert.equal((await open(page)).status, 410);
  assert.equal((await pressButton(api, page, { choice: "approved", nonce })).status, 410);
  assert.equal(await statusOf(id), decided);
});

test("who decided is in the activity, without the link", async () => {
  const { id } = await askForToken();
  await decideBy(api, id, "denied");
  const { rows } = await api.database.pool.query(
    "select action, actor_name from activity where detail->>'approval_id' = $1 order by id",
    [id],
  );
  assert.deepEqual(rows, [
    { action: "approval.requested", actor_name: "test" },
    { action: "approval.denied", actor_name: "decision page" },
  ]);
});

test("a link that leads nowhere is not found, whatever it looks like", async () => {
  for (const link of ["a".repeat(43), "a", "%00", "%zz", `${"b".repeat(43)}/x`]) {
    const { status } = await open(`/decide/${link}`);
    assert.ok(status === 404 || status === 400, `${link}: ${status}`);
  }
});

test("a suspended organization's requests cannot be decided, by a link or by an owner who is signed in", async () => {
  const { id, page } = await askTo("DELETE", `/v1/projects/${things.project.slug}/env/${things.variable}`);
  const cookie = await cookieOf(org.owner);
  const { operator } = await testOrganization(api.database.db, "operators");
  const operate = (action: string) => api.call("POST", `/v1/orgs/acme/${action}`, { token: operator });
  await operate("disable");
  assert.deepEqual([(await open(page)).status, (await pageOf(id, { cookie })).status], [410, 401]);
  await operate("enable");
  assert.equal((await decideBy(api, id, "approved")).status, 200);
});

test("a request of a token that has expired since cannot be decided", async () => {
  const expires_at = new Date(Date.now() + 60_000);
  const token = await testToken(api.database.db, org.id, { role: "owner", approval_mode: true, expires_at });
  const { page } = await askTo("POST", "/v1/api-tokens", { name: "late" }, token.text);
  assert.equal((await open(page)).status, 200);
  aheadMs = 120_000;
  assert.equal((await open(page)).status, 410);
  aheadMs = 0;
});

/** Returns the cookie of a browser that is signed in with this token. */
async function cookieOf(token: string): Promise<string> {
  const headers = { origin: api.platform.addresses.controlUrl, "x-berth-dashboard": "1" };
  const signedIn = await api.call("POST", "/session", { headers, body: { token } });
  assert.equal(signedIn.status, 200, signedIn.text);
  return (signedIn.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";
}

const pageOf = (id: string, headers: Record<string, string>) =>
  fetch(`${api.baseUrl}/session/decide/${id}`, { headers }).then(async (response) => ({
    status: response.status,
    headers: response.headers,
    html: await response.text(),
  }));

test("an owner who is signed in decides a request by its id; nobody else does", async () => {
  const { db, pool } = api.database;
  // Not a request for a token: the test before had one denied, and that denial applies for ten minutes.
  const { id, page } = await askTo("DELETE", `/v1/projects/${things.project.slug}/cron/${things.cron}`);
  const path = `/session/decide/${id}`;
  const origin = api.platform.addresses.controlUrl;
  const owner = await cookieOf(org.owner);
  const shown = await pageOf(id, { cookie: owner });
  assert.equal(shown.status, 200);
  assert.match(shown.headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/);
  const form = { choice: "approved", nonce: nonceIn(shown.html) };
  const limited = await testToken(db, org.id, { role: "owner", scopes: ["approvals:read"] });
  const refused: [string, number][] = [
    [org.member, 403],
    [agent, 403],
    [limited.text, 403],
    [(await testOrganization(db, "foreign")).owner, 404],
  ];
  for (const [token, status] of refused) {
    const cookie = await cookieOf(token);
    assert.equal((await pageOf(id, { cookie })).status, status, token);
    assert.equal((await pressButton(api, path, form, { origin, cookie })).status, 403, token);
  }
  // Not even with a nonce, which its page does not show it.
  const nonce = makeNonce(api.platform, `${id} ${limited.id}`);
  const ofLimited = { origin, cookie: await cookieOf(limited.text) };
  const pressed = await pressButton(api, path, { ...form, nonce }, ofLimited);
  assert.deepEqual([pressed.status, pressed.text.includes("Not for you to decide")], [403, true]);
  // A program's header does not replace the cookie, and another page's form does not replace the page's own form.
  assert.equal((await pageOf(id, { authorization: `Bearer ${org.owner}` })).status, 401);
  assert.equal((await pressButton(api, path, form, { origin })).status, 401);
  assert.equal((await pressButton(api, path, form, { origin: "https://evil.test", cookie: owner })).status, 403);
  const ofLink = nonceIn((await open(page)).html);
  assert.equal((await pressButton(api, path, { ...form, nonce: ofLink }, { origin, cookie: owner })).status, 403);
  assert.equal(await statusOf(id), "pending");
  assert.equal((await pressButton(api, path, form, { origin, cookie: owner })).status, 200);
  assert.equal(await statusOf(id), "approved");
  assert.equal((await pressButton(api, path, form, { origin, cookie: owner })).status, 410);
  assert.equal((await open(page)).status, 410);
  const { rows } = await pool.query(
    "select actor_name, actor_token_id is not null as by_token from activity where detail->>'approval_id' = $1 and action = 'approval.approved'",
    [id],
  );
  assert.deepEqual(rows, [{ actor_name: "test", by_token: true }]);
});
