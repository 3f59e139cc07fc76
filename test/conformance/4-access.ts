import assert from "node:assert/strict";
import { it } from "node:test";
import { softAuthenticator } from "../support/authenticator.ts";
import { eventually } from "../support/eventually.ts";
import { publicKey } from "./2-resources.ts";
import type { Json, Subject } from "./subject.ts";

/** Joins as Ada by an invitation's link, as the dashboard does; returns the session's token. */
async function joinBy({ platform, secrets }: Subject, url: string): Promise<string> {
  const { origin, hash } = new URL(url);
  let cookie = "";
  const post = async (path: string, more: object): Promise<Json> => {
    const headers = { "content-type": "application/json", origin, "x-berth-dashboard": "1", cookie };
    const body = JSON.stringify({ code: hash.slice(1), name: "Ada", ...more });
    const answer = await fetch(`${platform.api}/session/${path}`, { method: "POST", headers, body });
    cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? cookie;
    return answer.json();
  };
  const { options } = await post("join", {});
  const { token } = await post("join", { passkey: softAuthenticator(origin).create(options) });
  const second = await post("add-passkey", {});
  await post("add-passkey", { passkey: softAuthenticator(origin).create(second.options) });
  secrets.add(token);
  return token;
}

/** Rows about access, organizations and approvals. */
export function accessRows(subject: () => Subject): void {
  it("POST, GET and DELETE api-tokens; the text is shown once, and lists never hold it", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/api-tokens", { body: { name: "rows" } });
    assert.match(body.token, /^berth_m_[0-9A-Za-z]{49}$/);
    subject().secrets.add(body.token);
    const { api_tokens } = (await subject().expect(200, "GET", "/v1/api-tokens")).body;
    const listed = api_tokens.find(({ id }: Json) => id === body.id);
    assert.deepEqual([listed.name, listed.role, "token" in listed], ["rows", "member", false]);
    await subject().expect(204, "DELETE", `/v1/api-tokens/${body.id}`);
    await subject().expect(404, "DELETE", `/v1/api-tokens/${body.id}`);
  });

  it("POST, GET and DELETE ssh-keys", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/ssh-keys", {
      as: "member",
      body: { name: "rows", public_key: publicKey },
    });
    assert.equal(
      (await subject().expect(409, "POST", "/v1/ssh-keys", { body: { name: "again", public_key: publicKey } })).body
        .code,
      "key_taken",
    );
    await subject().expect(201, "POST", "/v1/ssh-keys", {
      as: "stranger",
      body: { name: "theirs", public_key: publicKey },
    });
    await subject().expect(404, "DELETE", `/v1/ssh-keys/${body.id}`, { as: "stranger" });
    await subject().expect(204, "DELETE", `/v1/ssh-keys/${body.id}`);
    await subject().expect(400, "POST", "/v1/ssh-keys", { body: { name: "wrong", public_key: "not a key" } });
  });

  it("POST, GET and DELETE invites; GET, PATCH and DELETE members", async () => {
    const { body } = await subject().expect(201, "POST", "/v1/invites", { body: { email: "ada@example.com" } });
    subject().secrets.add(body.url);
    const { invites } = (await subject().expect(200, "GET", "/v1/invites")).body;
    const listed = invites.find(({ id }: Json) => id === body.id);
    assert.deepEqual([listed.role, listed.email, "url" in listed], ["member", "ada@example.com", false]);
    const ada = await joinBy(subject(), body.url);
    const { members } = (await subject().expect(200, "GET", "/v1/members")).body;
    const { id } = members.find(({ name }: Json) => name === "Ada");
    const changed = await subject().expect(200, "PATCH", `/v1/members/${id}`, { body: { role: "owner" } });
    assert.deepEqual([changed.body.role, changed.body.projects], ["owner", null]);
    assert.equal((await subject().expect(200, "GET", "/v1/me", { as: ada })).body.person.name, "Ada");
    assert.equal((await subject().expect(200, "GET", "/v1/me/sessions", { as: ada })).body.sessions.length, 1);
    assert.deepEqual((await subject().expect(200, "GET", "/v1/me/sessions")).body.sessions, []);
    assert.equal((await subject().expect(409, "POST", "/v1/me/sessions/end")).body.code, "conflict");
    await subject().expect(204, "PATCH", "/v1/me", { as: ada, body: { name: "Ada L." } });
    const { passkeys } = (await subject().expect(200, "GET", "/v1/me/passkeys", { as: ada })).body;
    const [first, second] = passkeys.map(({ id: own }: Json) => `/v1/me/passkeys/${own}`);
    await subject().expect(204, "PATCH", first, { as: ada, body: { name: "Phone" } });
    await subject().expect(204, "DELETE", first, { as: ada });
    await subject().expect(409, "DELETE", second, { as: ada });
    assert.deepEqual((await subject().expect(200, "GET", "/v1/me/identities", { as: ada })).body.identities, []);
    await subject().expect(409, "DELETE", "/v1/me/identities/none");
    const { accounts } = (await subject().expect(200, "GET", "/v1/platform/people", { as: "operator" })).body;
    const account = `/v1/platform/people/${accounts.find(({ name }: Json) => name === "Ada L.").id}`;
    const { body: link } = await subject().expect(201, "POST", `${account}/link`, { as: "operator" });
    subject().secrets.add(link.url);
    await subject().expect(204, "POST", "/v1/me/sessions/end", { as: ada });
    await subject().expect(401, "GET", "/v1/me", { as: ada });
    const disabled = await subject().expect(200, "POST", `${account}/disable`, { as: "operator" });
    assert.deepEqual([disabled.body.can_sign_in, disabled.body.organizations], [false, ["main"]]);
    await subject().expect(200, "POST", `${account}/enable`, { as: "operator" });
    await subject().expect(204, "DELETE", `/v1/members/${id}`);
    assert.equal((await subject().expect(409, "DELETE", "/v1/me/membership")).body.code, "conflict");
    const again = await subject().expect(201, "POST", "/v1/invites", { body: {} });
    subject().secrets.add(again.body.url);
    const leaver = await joinBy(subject(), again.body.url);
    await subject().expect(204, "DELETE", "/v1/me/membership", { as: leaver });
    await subject().expect(401, "GET", "/v1/me", { as: leaver });
    const other = await subject().expect(201, "POST", "/v1/invites", { body: {} });
    await subject().expect(204, "DELETE", `/v1/invites/${other.body.id}`);
  });

  it("PUT, GET and DELETE identity providers", async () => {
    const body = { kind: "github", name: "GitHub", client_id: "id", client_secret: "s3cret-of-berth" };
    subject().secrets.add(body.client_secret);
    const { body: set } = await subject().expect(200, "PUT", "/v1/platform/providers/hub", { as: "operator", body });
    assert.deepEqual(
      [set.issuer, set.callback_url.endsWith("/session/oidc/hub/callback")],
      ["https://github.com", true],
    );
    await subject().expect(403, "PUT", "/v1/platform/providers/hub", { body });
    const wrong = { ...body, kind: "oidc", issuer: "https://login.microsoftonline.com/common/v2.0" };
    await subject().expect(400, "PUT", "/v1/platform/providers/entra", { as: "operator", body: wrong });
    const { providers } = (await subject().expect(200, "GET", "/v1/platform/providers", { as: "operator" })).body;
    assert.deepEqual(
      providers.map(({ id }: Json) => id),
      ["hub"],
    );
    await subject().expect(204, "DELETE", "/v1/platform/providers/hub", { as: "operator" });
  });

  it("GET me, overview and activity", async () => {
    const { body: me } = await subject().expect(200, "GET", "/v1/me", { as: "operator" });
    assert.deepEqual([me.platform_admin, me.role, me.organization.slug], [true, "owner", "main"]);
    const { body } = await subject().expect(200, "GET", "/v1/overview");
    const shop = body.projects.find(({ slug }: Json) => slug === "shop");
    assert.deepEqual([shop.active_deployment.status, shop.replicas.wanted, shop.database], ["active", 1, "ready"]);
    assert.equal(body.totals.projects, body.projects.length);
    assert.ok((await subject().expect(200, "GET", "/v1/activity")).body.activity.length > 0);
  });

  it("POST and GET orgs, disable and enable", async () => {
    const given = { as: "operator", body: { slug: "orgs", name: "Orgs", max_projects: 3 } };
    const made = await subject().expect(201, "POST", "/v1/orgs", given);
    assert.equal(made.body.max_projects, 3);
    assert.equal((await subject().expect(409, "POST", "/v1/orgs", given)).body.code, "slug_taken");
    assert.equal(
      (await subject().expect(200, "POST", "/v1/orgs/orgs/disable", { as: "operator" })).body.state,
      "suspended",
    );
    const { orgs } = (await subject().expect(200, "GET", "/v1/orgs", { as: "operator" })).body;
    assert.equal(orgs.find(({ slug }: Json) => slug === "orgs").state, "suspended");
    assert.equal(
      (await subject().expect(200, "POST", "/v1/orgs/orgs/enable", { as: "operator" })).body.state,
      "active",
    );
    await subject().expect(404, "POST", "/v1/orgs/nothing/disable", { as: "operator" });
    const rescued = (await subject().expect(201, "POST", "/v1/orgs/orgs/owner-token", { as: "operator" })).body;
    assert.match(rescued.owner_token, /^berth_o_/);
  });

  it("PUT, GET and DELETE the organization's logins for image registries", async () => {
    const path = "/v1/registries/registry.example.com";
    const { body } = await subject().expect(200, "PUT", path, { body: { username: "ada", password: "not shown" } });
    assert.equal(body.username, "ada");
    const listed = await subject().expect(200, "GET", "/v1/registries", { as: "member" });
    assert.ok(!JSON.stringify(listed.body).includes("not shown"));
    await subject().expect(404, "DELETE", path, { as: "stranger" });
    await subject().expect(204, "DELETE", path);
  });

  it("PUT, GET and DELETE the repository that a project follows; fetch it and list its deliveries", async () => {
    await subject().expect(201, "POST", "/v1/projects", { body: { slug: "follower", name: "Follower" } });
    const path = "/v1/projects/follower/follow";
    await subject().expect(404, "GET", path);
    const url = "https://git.invalid/acme/shop.git";
    const { body } = await subject().expect(200, "PUT", path, { body: { url, token: "not-shown" } });
    assert.match(body.secret, /^whsec_/);
    const shown = await subject().expect(200, "GET", path, { as: "member" });
    assert.ok(!JSON.stringify(shown.body).includes("whsec_") && !JSON.stringify(shown.body).includes("not-shown"));
    assert.equal((await subject().expect(201, "POST", `${path}/fetch`)).body.status, "waiting");
    assert.equal((await subject().expect(200, "GET", `${path}/deliveries`)).body.deliveries.length, 1);
    await subject().expect(204, "DELETE", path);
  });

  it("POST, GET, PATCH and DELETE webhooks, their tests and deliveries", async () => {
    const url = "https://hooks.example.com/secret";
    const { body } = await subject().expect(201, "POST", "/v1/webhooks", {
      body: { name: "chat", url, events: ["alert"] },
    });
    assert.match(body.secret, /^whsec_/);
    const listed = await subject().expect(200, "GET", "/v1/webhooks");
    assert.ok(!JSON.stringify(listed.body).includes("whsec_"));
    const path = `/v1/webhooks/${body.id}`;
    const changed = await subject().expect(200, "PATCH", path, { body: { enabled: false } });
    assert.equal(changed.body.enabled, false);
    const sent = await subject().expect(201, "POST", `${path}/test`);
    const { deliveries } = (await subject().expect(200, "GET", `${path}/deliveries`)).body;
    assert.equal(deliveries[0].id, sent.body.id);
    await subject().expect(404, "DELETE", path, { as: "stranger" });
    await subject().expect(204, "DELETE", path);
  });

  it("GET status: health and monitor checks of the host; GET alerts; GET platform/overview", async () => {
    const { body } = await subject().expect(200, "GET", "/v1/status", { as: "operator" });
    assert.ok(["ok", "warn", "unknown", "fail"].includes(body.status));
    const { body: alerts } = await subject().expect(200, "GET", "/v1/alerts", { as: "operator" });
    assert.ok(alerts.alerts.every(({ resolved_at }: Json) => resolved_at === null));
    const { body: overview } = await subject().expect(200, "GET", "/v1/platform/overview", { as: "operator" });
    const { body: use } = await subject().expect(200, "GET", "/v1/platform/metrics?range=1h", { as: "operator" });
    assert.deepEqual([use.times.length, use.machines.length, use.edges.requests.length], [61, 1, 61]);
    const { body: pool } = await subject().expect(200, "GET", "/v1/platform/machines", { as: "operator" });
    assert.deepEqual(pool.machines, []);
    assert.ok(overview.projects.total >= 1 && overview.machines.length === 1 && overview.databases.ready >= 1);
    // A clone has no installed versions, and no migration waits.
    const { body: versions } = await subject().expect(200, "GET", "/v1/platform/versions", { as: "operator" });
    assert.deepEqual([versions.version, versions.installed, versions.unfinalized], [overview.version, [], []]);
    const { body: after } = await subject().expect(200, "POST", "/v1/platform/finalize", { as: "operator" });
    assert.deepEqual(after, versions);
  });

  it("POST platform/backups: one at a time, encrypted; GET platform/backups lists it", async () => {
    const { body: begun } = await subject().expect(201, "POST", "/v1/platform/backups", { as: "operator" });
    assert.deepEqual([begun.status, begun.origin, begun.problem], ["running", "manual", null]);
    await subject().expect(409, "POST", "/v1/platform/backups", { as: "operator" });
    const made = await eventually(async () => {
      const { body } = await subject().expect(200, "GET", "/v1/platform/backups", { as: "operator" });
      return body.backups.find(({ id, status }: Json) => id === begun.id && status !== "running");
    }, "the backup of the platform has ended");
    assert.equal(made.status, "completed", made.problem);
    assert.ok(made.size_bytes > 0 && made.recipient.startsWith("age1"));
  });

  it("The approval flow: approval_required, poll, then the identical request; each gated route", async () => {
    await subject().expect(204, "PUT", "/v1/projects/rows/env/GATED", { body: { value: "x" } });
    await subject().expect(201, "PUT", "/v1/projects/rows/cron/gated", { body: { schedule: "0 0 1 1 *", path: "/" } });
    for (const [method, path, body, status] of gated) {
      const ask = () => subject().call(method, path, { as: "careful", ...(body === undefined ? {} : { body }) });
      const id = await subject().decide("approved", ask);
      const polled = await subject().expect(200, "GET", `/v1/approvals/${id}?wait=5`, { as: "careful" });
      assert.equal(polled.body.status, "approved");
      const done = await ask();
      assert.equal(done.status, status, `${method} ${path}: ${done.text}`);
      if (done.body?.token !== undefined) assert.equal(done.body.approval_mode, true, "approval mode is inherited");
      assert.equal((await subject().expect(200, "GET", `/v1/approvals/${id}`)).body.status, "consumed");
    }
  });

  it("DELETE approvals/:id withdraws an open request of the token's own, and no other", async () => {
    const asked = await subject().expect(403, "POST", "/v1/api-tokens", { as: "careful", body: { name: "withdrawn" } });
    const path = `/v1/approvals/${asked.body.approval.id}`;
    await subject().expect(403, "DELETE", path);
    await subject().expect(204, "DELETE", path, { as: "careful" });
    assert.equal((await subject().expect(200, "GET", path)).body.status, "expired");
    await subject().expect(409, "DELETE", path, { as: "careful" });
  });

  it("GET approvals lists the organization's requests and statuses; another organization's approvals are missing", async () => {
    const { approvals } = (await subject().expect(200, "GET", "/v1/approvals?status=consumed")).body;
    assert.ok(approvals.length >= gated.length && approvals.every(({ status }: Json) => status === "consumed"));
    await subject().expect(404, "GET", `/v1/approvals/${approvals[0].id}`, { as: "stranger" });
    await subject().expect(404, "GET", "/v1/approvals/apr_nothing");
  });

  it("GET approvals/:id with ?wait answers as soon as the approval is decided", async () => {
    let waited: Promise<Json> | undefined;
    const ask = async () => {
      const asked = await subject().call("DELETE", "/v1/projects/rows", { as: "careful" });
      waited = subject().expect(200, "GET", `/v1/approvals/${asked.body.approval.id}?wait=30`);
      return asked;
    };
    const begun = performance.now();
    await subject().decide("denied", ask);
    assert.equal((await waited)?.body.status, "denied");
    assert.ok(performance.now() - begun < 20_000);
  });
}

const gated = [
  ["DELETE", "/v1/projects/rows/env/GATED", undefined, 204],
  ["DELETE", "/v1/projects/rows/cron/gated", undefined, 204],
  ["POST", "/v1/projects/shop/restore", {}, 201],
  ["POST", "/v1/api-tokens", { name: "made by a careful one" }, 201],
] as const;
