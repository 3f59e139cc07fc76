import assert from "node:assert/strict";
import { test } from "node:test";
import { testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { scopes } from "../../contract/access.ts";

const api = await sharedApi();
const home = await testOrganization(api.database.db, "main");

const operate = (method: string, path: string, body?: unknown) =>
  api.call(method, path, { token: home.operator, ...(body === undefined ? {} : { body }) });

test("a new organization comes with an owner token that is shown once and may do everything in it", async () => {
  const { status, body } = await operate("POST", "/v1/orgs", { slug: "acme", name: "Acme", max_projects: 2 });
  assert.equal(status, 201);
  const { owner_token: token, ...organization } = body;
  const { id, created_at, ...rest } = organization;
  assert.match(String(id), /^org_/);
  assert.equal(typeof created_at, "string");
  const shown = { slug: "acme", name: "Acme", state: "active", max_projects: 2, projects: 0, suspended_at: null };
  assert.deepEqual(rest, shown);
  const me = await api.call("GET", "/v1/me", { token: String(token) });
  assert.deepEqual([me.body["role"], me.body["platform_admin"]], ["owner", false]);
  const { scopes: held, expires_at } = me.body["token"] as { scopes: string[]; expires_at: string };
  // All scopes except those of routes that only the platform's operator may call.
  assert.deepEqual(
    scopes.filter((scope) => !held.includes(scope)),
    ["orgs:read", "orgs:write", "platform:read"],
  );
  assert.ok(Math.abs(Date.parse(expires_at) - Date.now() - 90 * 86_400_000) < 60_000);
  const { text } = await operate("GET", "/v1/orgs");
  assert.doesNotMatch(text, /berth_/);
});

test("a slug is taken by one organization", async () => {
  await operate("POST", "/v1/orgs", { slug: "twice", name: "One" });
  const { status, body } = await operate("POST", "/v1/orgs", { slug: "twice", name: "Two" });
  assert.deepEqual([status, body["code"]], [409, "slug_taken"]);
  for (const slug of ["Upper", "-x", "api", ""])
    assert.equal((await operate("POST", "/v1/orgs", { slug, name: "x" })).status, 400);
});

test("50 projects made at once stop at the organization's limit, and so does an undelete", async () => {
  const { body } = await operate("POST", "/v1/orgs", { slug: "small", name: "Small", max_projects: 3 });
  const token = String(body["owner_token"]);
  const create = (slug: string) => api.call("POST", "/v1/projects", { token, body: { slug, name: slug } });
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => create(`p${i}`)));
  const made = all.filter(({ status }) => status === 201).map((called) => String(called.body["slug"]));
  assert.equal(made.length, 3);
  assert.ok(all.every(({ status, body: said }) => status === 201 || said["code"] === "project_limit_reached"));
  await api.call("DELETE", `/v1/projects/${made[0]}`, { token });
  assert.equal((await create("fourth")).status, 201);
  const undeleted = await api.call("POST", `/v1/projects/${made[0]}/undelete`, { token });
  assert.deepEqual([undeleted.status, undeleted.body["code"]], [403, "project_limit_reached"]);
});

test("a suspended organization's tokens answer org_suspended at once, and work again when it is enabled", async () => {
  const org = await testOrganization(api.database.db, "stopped");
  await testProject(api.platform, org, "demo");
  const read = () => api.call("GET", "/v1/projects/demo", { token: org.member });
  assert.equal((await read()).status, 200);
  const disabled = await operate("POST", "/v1/orgs/stopped/disable");
  assert.deepEqual([disabled.status, disabled.body["state"]], [200, "suspended"]);
  const refused = await read();
  assert.deepEqual([refused.status, refused.body["code"]], [403, "org_suspended"]);
  assert.equal((await operate("POST", "/v1/orgs/stopped/enable")).body["state"], "active");
  assert.equal((await read()).status, 200);
});

test("suspending twice changes nothing the second time, and nobody suspends the organization they act from", async () => {
  await testOrganization(api.database.db, "again");
  const [first, second] = [
    await operate("POST", "/v1/orgs/again/disable"),
    await operate("POST", "/v1/orgs/again/disable"),
  ];
  assert.deepEqual(first.body, second.body);
  const own = await operate("POST", "/v1/orgs/main/disable");
  assert.deepEqual([own.status, own.body["code"]], [409, "conflict"]);
  assert.equal((await operate("POST", "/v1/orgs/never/disable")).status, 404);
});

test("the organization itself sees in its activity that it was made, suspended and enabled", async () => {
  const { rows } = await api.database.pool.query(
    `select a.action from activity a join organization o on o.id = a.org_id where o.slug in ('acme', 'stopped') order by a.id`,
  );
  const actions = rows.map(({ action }: { action: string }) => action);
  for (const action of ["org.created", "org.disabled", "org.enabled"]) assert.ok(actions.includes(action), action);
});

test("an operator changes an organization's name and limit, and nothing that is left out", async () => {
  await operate("POST", "/v1/orgs", { slug: "changing", name: "Before", max_projects: 1 });
  const wider = await operate("PATCH", "/v1/orgs/changing", { max_projects: 5 });
  assert.deepEqual([wider.status, wider.body["name"], wider.body["max_projects"]], [200, "Before", 5]);
  const named = await operate("PATCH", "/v1/orgs/changing", { name: "After" });
  assert.deepEqual([named.body["name"], named.body["max_projects"]], ["After", 5]);
  assert.equal((await operate("PATCH", "/v1/orgs/changing", {})).status, 200);
  assert.equal((await operate("PATCH", "/v1/orgs/changing", { slug: "other" })).status, 400);
  assert.equal((await operate("PATCH", "/v1/orgs/none", { name: "x" })).status, 404);
});

test("an operator scales another organization's project, which its owners see and find in its timeline", async () => {
  const other = await testOrganization(api.database.db, "elsewhere");
  const { slug } = await testProject(api.platform, other);
  const path = `/v1/orgs/elsewhere/projects/${slug}/scale`;
  assert.equal((await operate("PUT", path, { replicas: 3 })).status, 200);
  const shown = await api.call("GET", `/v1/projects/${slug}`, { token: other.owner });
  assert.equal(shown.body["replicas"], 3);
  const { body } = await api.call("GET", `/v1/projects/${slug}/timeline`, { token: other.owner });
  assert.equal((body["timeline"] as { action: string }[])[0]?.action, "project.scaled");
  assert.equal((await api.call("PUT", path, { token: other.owner, body: { replicas: 2 } })).status, 403);
  assert.equal((await operate("PUT", `/v1/orgs/main/projects/${slug}/scale`, { replicas: 2 })).status, 404);
  assert.equal((await operate("PUT", `/v1/orgs/none/projects/${slug}/scale`, { replicas: 2 })).status, 404);
});

test("a call right after disable or enable gets the new state, however the tokens are remembered", async () => {
  const other = await testOrganization(api.database.db, "flapping");
  const status = async () => (await api.call("GET", "/v1/me", { token: other.owner })).status;
  for (let n = 0; n < 20; n += 1) {
    assert.equal(await status(), 200);
    await operate("POST", "/v1/orgs/flapping/disable");
    assert.equal(await status(), 403);
    await operate("POST", "/v1/orgs/flapping/enable");
  }
});
