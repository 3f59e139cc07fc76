import assert from "node:assert/strict";
import { test } from "node:test";
import { testProject } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { builderDouble, runtimeDouble } from "../../../test/support/port-doubles.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { createLocalRepositories } from "../../adapters/repositories-local/local-repositories.ts";
import { silentLog } from "../../kit/log.ts";
import { registryLogins } from "./registries.ts";

const dir = testFolder("registries");
const repositories = await createLocalRepositories({ dir, log: silentLog });
let runtime: string;
const described = await runtimeDouble().describe();
const describe = async () => ({ ...described, name: runtime });
let tried: "accepted" | "refused" | "unknown" = "accepted";
const builder = builderDouble({ tryLogin: async () => tried });
const api = await sharedApi({ ports: { builder, repositories, runtime: runtimeDouble({ describe }) } });
const org = await testOrganization(api.database.db, "acme");
const other = await testOrganization(api.database.db, "other");

const secret = "pull-token-of-acme";
const set = (host: string, body: unknown, token = org.owner) =>
  api.call("PUT", `/v1/registries/${encodeURIComponent(host)}`, { token, body });
const list = async (token: string) => (await api.call("GET", "/v1/registries", { token })).text;

test("a registry's password is sealed, never shown again, and another organization's builds do not get it", async () => {
  const { db, vault } = api.platform;
  const created = await set("ghcr.io", { username: "ada", password: secret });
  assert.deepEqual([created.status, created.body["host"], created.body["username"]], [200, "ghcr.io", "ada"]);
  const activity = await db.selectFrom("activity").selectAll().where("action", "=", "registry.set").execute();
  assert.equal(activity.length, 1);
  for (const shown of [created.text, await list(org.member), JSON.stringify(activity)])
    assert.ok(!shown.includes(secret), shown);
  const row = await db.selectFrom("registry").selectAll().where("org_id", "=", org.id).executeTakeFirstOrThrow();
  assert.ok(!row.sealed_password.includes(secret));
  assert.deepEqual(await registryLogins(db, vault, org.id), [{ host: "ghcr.io", username: "ada", password: secret }]);
  assert.deepEqual(await registryLogins(db, vault, other.id), []);
  assert.equal(await list(other.owner), '{"registries":[]}');
  await set("ghcr.io", { username: "ada", password: "rotated" });
  assert.equal((await registryLogins(db, vault, org.id))[0]?.password, "rotated");
  assert.equal((await api.call("DELETE", "/v1/registries/ghcr.io", { token: other.owner })).status, 404);
  assert.equal((await api.call("DELETE", "/v1/registries/ghcr.io", { token: org.owner })).status, 204);
  assert.deepEqual(await registryLogins(db, vault, org.id), []);
});

test("a password that the registry refuses is not stored, and the answer says whether it was tried", async () => {
  tried = "refused";
  const refused = await set("wrong.example.com", { username: "ada", password: secret });
  assert.deepEqual([refused.status, refused.body["code"]], [400, "invalid_request"]);
  assert.match(refused.text, /wrong\.example\.com refused this password of ada/);
  assert.ok(!refused.text.includes(secret));
  assert.equal(await list(org.owner), '{"registries":[]}');
  for (const [answer, login] of [
    ["unknown", "untried"],
    ["accepted", "accepted"],
  ] as const) {
    tried = answer;
    assert.equal((await set("right.example.com", { username: "ada", password: secret })).body["login"], login);
  }
  assert.equal((await api.call("DELETE", "/v1/registries/right.example.com", { token: org.owner })).status, 204);
});

test("a token in approval mode stores a new password, but a human decides before it overwrites one, even with the same", async () => {
  const { text: agent } = await testToken(api.database.db, org.id, { role: "owner", approval_mode: true });
  assert.equal((await set("quay.io", { username: "ada", password: secret }, agent)).status, 200);
  for (const password of ["another", secret]) {
    const refused = await set("quay.io", { username: "ada", password }, agent);
    assert.deepEqual([refused.status, refused.body["code"]], [403, "approval_required"]);
  }
  const { db, vault } = api.platform;
  assert.deepEqual(await registryLogins(db, vault, org.id), [{ host: "quay.io", username: "ada", password: secret }]);
  await api.call("DELETE", "/v1/registries/quay.io", { token: org.owner });
});

test("Docker Hub has one name, and a registry in a private network is refused unless the operator allows it", async () => {
  const login = { username: "ada", password: secret };
  assert.equal((await set("index.docker.io", login)).body["host"], "docker.io");
  assert.equal((await set("registry.internal:5000", login)).status, 200);
  for (const host of [
    "10.1.2.3:5000",
    "127.0.0.1",
    "localhost:5000",
    "registry",
    "169.254.169.254",
    "hub.internal",
    "127.1",
    "0x7f.1:443",
    "10.1:5000",
  ]) {
    const { status, text } = await set(host, login);
    assert.equal(status, 400, host);
    assert.match(text, /private network.*BERTH_PRIVATE_REGISTRIES/);
    assert.ok(!text.includes(secret));
  }
  for (const host of ["ghcr.io:99999", "1.2.3.4.5", "https://ghcr.io", "ghcr.io/acme", "GHCR.io", "a b"])
    assert.equal((await set(host, login)).status, 400, host);
});

test("an image is deployed as a source of one Dockerfile, in the folder that the project builds", async () => {
  runtime = "docker";
  const project = await testProject(api.platform, org);
  await api.database.db.updateTable("project").set({ root: "web" }).where("id", "=", project.id).execute();
  const deploy = (body: unknown) =>
    api.call("POST", `/v1/projects/${project.slug}/deployments`, { token: org.member, body });
  const { status, body } = await deploy({ image: "ghcr.io/acme/shop:1.4" });
  assert.equal(status, 201, JSON.stringify(body));
  const file = { path: "web/Dockerfile", maxBytes: 1000 };
  const text = await repositories.read(project.id, String(body["commit"]), file);
  assert.match(String(text), /^FROM ghcr\.io\/acme\/shop:1\.4$/m);
  const build = await api.database.db
    .selectFrom("build")
    .select(["status", "message"])
    .where("id", "=", String(body["build_id"]))
    .executeTakeFirst();
  assert.deepEqual(build, { status: "queued", message: "Image ghcr.io/acme/shop:1.4" });
  for (const image of ["x\nRUN id", "a b", "$X", "10.0.0.1/x", "localhost/x", "UPPER/x Y", "-x", "a@sha256:12"])
    assert.equal((await deploy({ image })).status, 400, image);
  assert.equal((await deploy({ image: "nginx", commit: "a".repeat(40) })).status, 400);
});

test("a platform of processes refuses an image and says what to set", async () => {
  runtime = "process";
  const project = await testProject(api.platform, org);
  const path = `/v1/projects/${project.slug}/deployments`;
  const { status, body } = await api.call("POST", path, { token: org.member, body: { image: "nginx" } });
  assert.deepEqual([status, body["code"]], [409, "images_not_supported"]);
  assert.match(String(body["hint"]), /BERTH_RUNTIME=docker/);
});
