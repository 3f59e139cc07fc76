import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedApi, testOrganization } from "../../test/support/test-platform.ts";

const file = (text: string, type: string) => ({ bytes: Buffer.from(text), gzip: undefined, type });
const page = `<!doctype html><script>let theme</script><script type="module" src="/assets/main-1.js"></script>`;

const files = new Map([
  ["/index.html", file(page, "text/html")],
  ["/assets/main-1.js", file("go()", "text/javascript")],
]);
const api = await sharedApi({ http: { dashboard: { bundle: () => ({ files }) } } });
const org = await testOrganization(api.database.db, "home");

const asksHtml = { accept: "text/html,*/*" };
const ownPage = () => ({ origin: api.baseUrl, "x-berth-dashboard": "1" });

test("a browser gets the page at any path that no route has, and a client of the API an error", async () => {
  for (const path of ["/", "/projects/shop/logs", "/sign-in"])
    assert.equal((await api.call("GET", path, { headers: asksHtml })).text, page, path);
  for (const path of ["/v1/nowhere", "/git/nowhere", "/assets/nowhere.js", "/session"])
    assert.equal((await api.call("GET", path, { headers: asksHtml })).status, 404, path);
  assert.equal((await api.call("GET", "/", { headers: { accept: "*/*" } })).text, page);
  assert.equal((await api.call("GET", "/nowhere", { headers: { accept: "application/json" } })).status, 404);
});

test("the page loads from its own origin alone, is stored nowhere and framed by nobody; its files never change", async () => {
  const { headers } = await api.call("GET", "/", { headers: asksHtml });
  const policy = headers.get("content-security-policy") ?? "";
  assert.match(policy, /^default-src 'none'; script-src 'self' 'sha256-[\w+/=]+'; style-src 'self';/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|https?:|\*/);
  assert.equal(headers.get("cache-control"), "no-store");
  const script = await api.call("GET", "/assets/main-1.js");
  assert.equal(script.headers.get("cache-control"), "public, max-age=31536000, immutable");
});

test("a one-time link signs in once, and a token that is none not at all", async () => {
  const made = await api.call("POST", "/session/link", { token: org.member });
  const code = String(made.body["url"]).split("#")[1] ?? "";
  const { rows } = await api.database.pool.query<Record<string, Buffer>>(
    "select hash, token_hash, locked_token from sign_in_link",
  );
  const stored = Buffer.concat(rows.flatMap((row) => Object.values(row)));
  assert.ok(
    stored.length > 0 && !stored.includes(code) && !stored.includes(org.member),
    "only the code opens the token",
  );
  const signedIn = await api.call("POST", "/session", { headers: ownPage(), body: { code } });
  assert.deepEqual([signedIn.status, signedIn.body["token"]], [200, org.member]);
  for (const body of [{ code }, { token: "berth_o_none" }, {}])
    assert.equal((await api.call("POST", "/session", { headers: ownPage(), body })).status, 401);
  assert.equal((await api.call("POST", "/session/link", { token: "berth_o_none" })).status, 401);
});

test("a link never replaces a session, or starts one from another site, without a question", async () => {
  const other = await testOrganization(api.database.db, "other");
  const codeOf = async (token: string) =>
    String((await api.call("POST", "/session/link", { token })).body["url"]).split("#")[1];
  const first = await api.call("POST", "/session", { headers: ownPage(), body: { token: org.member } });
  const cookie = (first.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const open = (body: object, headers: object = { cookie }) =>
    api.call("POST", "/session", { headers: { ...ownPage(), ...headers }, body });
  const code = await codeOf(other.member);
  const asked = await open({ code });
  assert.deepEqual(asked.body["question"], { organization: other.slug, token: "test", present: org.slug });
  assert.deepEqual([asked.body["token"], asked.headers.get("set-cookie")], [undefined, null]);
  assert.equal((await open({ code, agreed: true })).body["token"], other.member);
  assert.equal(
    (await open({ code: await codeOf(org.member), elsewhere: true })).body["token"],
    org.member,
    "the same token",
  );
  const away = await open({ code: await codeOf(org.member), elsewhere: true }, {});
  assert.deepEqual(away.body["question"], { organization: org.slug, token: "test", present: null });
});

test("the page learns whether another site has opened it", async () => {
  const timing = async (site: string) =>
    (await api.call("GET", "/sign-in", { headers: { ...asksHtml, "sec-fetch-site": site } })).headers.get(
      "server-timing",
    );
  assert.deepEqual(
    [await timing("cross-site"), await timing("none"), await timing('x"')],
    ['site;desc="cross-site"', 'site;desc="none"', null],
  );
});

test("a session's cookie goes to /session alone, is no script's to read, and never authenticates the API", async () => {
  const { headers } = await api.call("POST", "/session", { headers: ownPage(), body: { token: org.member } });
  const set = headers.get("set-cookie") ?? "";
  assert.match(set, /Path=\/session; Max-Age=\d+; HttpOnly; SameSite=Strict$/);
  assert.ok(!set.includes(org.member));
  const cookie = set.split(";")[0] ?? "";
  const resumed = await api.call("POST", "/session/resume", { headers: { ...ownPage(), cookie } });
  assert.equal(resumed.body["token"], org.member);
  assert.equal((await api.call("GET", "/v1/me", { headers: { cookie } })).status, 401);
  const foreign = { cookie: cookie.replace(/.{8}$/, "AAAAAAAA") };
  assert.equal(
    (await api.call("POST", "/session/resume", { headers: { ...ownPage(), ...foreign } })).body["token"],
    null,
  );
});

test("a session ends twelve hours after the sign-in", async (t) => {
  const { headers } = await api.call("POST", "/session", { headers: ownPage(), body: { token: org.member } });
  const cookie = (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const tokenAfter = async (minutes: number) => {
    t.mock.timers.enable({ apis: ["Date"], now: Date.now() + minutes * 60_000 });
    const resumed = await api.call("POST", "/session/resume", { headers: { ...ownPage(), cookie } });
    t.mock.timers.reset();
    return resumed.body["token"];
  };
  assert.deepEqual([await tokenAfter(12 * 60 - 1), await tokenAfter(12 * 60 + 1)], [org.member, null]);
});

test("a page of another origin neither signs in nor out nor learns the token", async () => {
  const { headers } = await api.call("POST", "/session", { headers: ownPage(), body: { token: org.member } });
  const cookie = (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const foreign = [
    { origin: "http://evil.test", "x-berth-dashboard": "1" },
    { origin: api.baseUrl },
    { "x-berth-dashboard": "1" },
  ];
  for (const from of foreign as Record<string, string>[]) {
    assert.equal((await api.call("POST", "/session", { headers: from, body: { token: org.member } })).status, 403);
    assert.equal((await api.call("POST", "/session/resume", { headers: { ...from, cookie } })).status, 403);
    assert.equal((await api.call("DELETE", "/session", { headers: { ...from, cookie } })).status, 403);
  }
});

test("over HTTPS only this host can set the session's cookie: one of an application below the same domain is not taken", async () => {
  const https = { origin: `https://${new URL(api.baseUrl).host}`, "x-berth-dashboard": "1" };
  const { headers } = await api.call("POST", "/session", { headers: https, body: { token: org.member } });
  const set = headers.get("set-cookie") ?? "";
  assert.match(set, /^__Host-berth_session=[^;]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/);
  const own = set.split(";")[0] ?? "";
  const resume = (cookie: string) => api.call("POST", "/session/resume", { headers: { ...https, cookie } });
  const planted = own.replace("__Host-", "");
  assert.equal((await resume(planted)).body["token"], null);
  assert.equal((await resume(`${planted}; ${own}`)).body["token"], org.member);
  const left = await api.call("DELETE", "/session", { headers: https });
  assert.match(
    left.headers.get("set-cookie") ?? "",
    /^__Host-berth_session=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict; Secure$/,
  );
});

test("a token's links push out its own oldest one, never those of others", async () => {
  const link = async (token: string) =>
    String((await api.call("POST", "/session/link", { token })).body["url"]).split("#")[1] ?? "";
  const first = await link(org.owner);
  const flood = await Promise.all(Array.from({ length: 12 }, () => link(org.member)));
  const open = async (code: string) =>
    (await api.call("POST", "/session", { headers: ownPage(), body: { code } })).status;
  const opened = await Promise.all(flood.map(open));
  assert.equal(opened.filter((status) => status === 200).length, 5);
  assert.equal(await open(first), 200);
});
