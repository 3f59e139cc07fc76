import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { route, type RouteName } from "../../src/contract/routes.ts";
import { run, systemPath } from "../../src/kit/exec.ts";
import { cliUser, type CliUser } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
import { losses } from "../matrix/losses.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";

// Drawn with other journey files: it starts a whole platform, which takes too long for every run. The table is that of docs/approvals.md.

const at = "/v1/projects/shop";
const rows = `${at}/data/tables/public/orders/rows`;

let platform: TestPlatform;
let app: TestApp;
let person: CliUser;
let key: string;
let hook: string;
let backup: string;
let restored: string;
let invite: string;
let sshKey: string;
const tokens: string[] = [];

const files = (page: string, change: string) => ({
  "package.json": JSON.stringify({ name: "shop", private: true, dependencies: { pg: "8.23.1" } }),
  Procfile: "web: node server.js\nrelease: node release.js\n",
  "server.js": `require("http").createServer((req, res) => res.end("${page} " + process.env.API_KEY)).listen(process.env.PORT);`,
  "release.js": `const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
require("fs").writeFileSync(process.env.STORAGE_DIR + "/kept", "kept");
client.connect().then(() => client.query("${change}")).then(() => client.end());`,
});

async function made<T>(path: string, body: object, method = "POST"): Promise<T> {
  const answer = await platform.call<T>(method, path, body);
  assert.ok(answer.status < 300, JSON.stringify(answer.body));
  return answer.body;
}

before(async () => {
  platform = await startPlatform();
  app = await createApp(
    platform,
    "shop",
    files("here", "create table orders as select 1 as id; alter table orders add primary key (id)"),
  );
  await made(`${at}/database`, {});
  await made(`${at}/env/API_KEY`, { value: "first" }, "PUT");
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  await made(`${at}/cron/nightly`, { path: "/nightly", schedule: "0 3 1 1 *" }, "PUT");
  await made(`${at}/domains`, { hostname: "shop.example.org" });
  const url = "https://hooks.example.org/x";
  hook = (await made<{ id: string }>("/v1/webhooks", { name: "ops", url, events: ["certificate"] })).id;
  key = (await made<{ id: string }>("/v1/api-tokens", { name: "colleague" })).id;
  backup = (await made<{ id: string }>(`${at}/backups`, {})).id;
  await eventually(async () => {
    const { body } = await platform.call("GET", `/v1/backups/${backup}`);
    return body["status"] === "completed";
  }, "the backup is complete");
  await prepareLater();
  person = await cliUser({ url: platform.api, token: platform.token });
});
after(async () => {
  await person?.[Symbol.asyncDispose]();
  await platform?.destroy();
});

/** What came with branches, previews, members and the rest. */
async function prepareLater(): Promise<void> {
  await made(`${at}/settings`, { previews: ["staging"] }, "PUT");
  const preview = await app.push("staging");
  assert.equal(preview.exitCode, 0, preview.stderr);
  await made(`${at}/previews/staging/pin`, {}, "PUT");
  await made(`${at}/database/branches`, { name: "trial" });
  await made("/v1/registries/registry.example.org", { username: "ada", password: "secret" }, "PUT");
  await made(`${at}/follow`, { url: "https://git.example.org/acme/shop.git" }, "PUT");
  invite = (await made<{ id: string }>("/v1/invites", { role: "member" })).id;
  const public_key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${"A".repeat(43)}`;
  sshKey = (await made<{ id: string }>("/v1/ssh-keys", { name: "laptop", public_key })).id;
  await made(`${at}/restore`, { backup_id: backup });
  restored = await eventually(async () => {
    const { body } = await platform.call<{ databases: { database: string }[] }>("GET", `${at}/database/restored`);
    return body.databases[0]?.database;
  }, "the backup is restored beside the live database");
}

/** A token of its own for each attempt, since one has at most five requests open. */
async function agent(): Promise<string> {
  const name = `agent-${tokens.length}`;
  const { token } = await made<{ token: string }>("/v1/api-tokens", { name, role: "owner", approval_mode: true });
  tokens.push(token);
  return token;
}

async function tried(method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${await agent()}`, "content-type": "application/json" };
  const answer = await fetch(platform.api + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  const text = await answer.text();
  return { status: answer.status, text };
}

async function pushed(...refs: string[]) {
  const login = Buffer.from(`agent:${await agent()}`).toString("base64");
  const header = `http.extraHeader=Authorization: Basic ${login}`;
  const args = ["-c", header, "push", "--force", `${platform.api}/git/main/shop.git`, ...refs];
  const env = { PATH: systemPath, HOME: app.dir, GIT_CONFIG_GLOBAL: "/dev/null" };
  return run({ file: "git", args }, { cwd: app.dir, env });
}

const page = async () => (await platform.visit("shop")).body;

/** What a person would miss: without times and states that change by themselves. */
async function possessions(): Promise<unknown> {
  const get = async (path: string) => (await platform.call("GET", path)).body as Record<string, object[]>;
  const named = (list: object[] = [], ...names: string[]) =>
    list.map((each) => names.map((name) => (each as Record<string, unknown>)[name]));
  return [
    named((await get(`${at}/env`))["variables"], "key", "value"),
    named((await get(`${at}/cron`))["jobs"], "name", "schedule", "path", "enabled"),
    named((await get(`${at}/domains`))["domains"], "hostname"),
    named((await get("/v1/webhooks"))["webhooks"], "name", "events", "enabled"),
    named((await get(`${at}/backups`))["backups"], "id"),
    named((await get(`${at}/previews`))["previews"], "branch", "expires_at"),
    named((await get(`${at}/database/branches`))["branches"], "name"),
    named((await get(`${at}/database/restored`))["databases"], "database"),
    named((await get("/v1/registries"))["registries"], "host", "username"),
    named((await get("/v1/invites"))["invites"], "id"),
    named((await get("/v1/ssh-keys"))["ssh_keys"], "name"),
    (await get(`${at}/follow`))["url"],
    (await get(`${at}/data/tables/public/orders`))["total"],
    await page(),
    await app.remoteHead(),
  ];
}

/** Attempts by row: its path after the organization's or project's, and its body. */
const gated = (): readonly (readonly [RouteName, string, object?])[] => [
  ["projects.delete", at],
  ["env.delete", `${at}/env/API_KEY`],
  ["domains.detach", `${at}/domains/shop.example.org`],
  ["cron.delete", `${at}/cron/nightly`],
  ["cron.set", `${at}/cron/nightly`, { command: "rm -rf $STORAGE_DIR", schedule: "* * * * *" }],
  ["cron.import", `${at}/cron/import`, { crons: [{ command: "true", schedule: "* * * * *" }] }],
  ["webhooks.delete", `/v1/webhooks/${hook}`],
  ["webhooks.update", `/v1/webhooks/${hook}`, { enabled: false }],
  ["webhooks.update", `/v1/webhooks/${hook}`, { url: "https://elsewhere.example.org/x" }],
  ["tokens.delete", `/v1/api-tokens/${key}`],
  ["tokens.create", "/v1/api-tokens", { name: "free", role: "owner" }],
  ["data.update", rows, { key: { id: 1 }, values: { id: 2 } }],
  ["data.delete", rows, { key: { id: 1 } }],
  ["runs.create", `${at}/runs`, { command: "rm -rf $STORAGE_DIR" }],
  ["database.connect", `${at}/database/sessions`, {}],
  ["database.import", `${at}/database/import`, {}],
  ["branches.create", `${at}/database/branches`, { name: "all" }],
  ["branches.delete", `${at}/database/branches/trial`],
  ["backups.restore", `${at}/restore`, { backup_id: backup }],
  ["backups.promote", `${at}/database/promote`, { database: restored }],
  ["backups.drop", `${at}/database/restored/${restored}`],
  ["backups.set_archive", `${at}/database/archive`, { enabled: false }],
  ["disk.remove", `${at}/disk/storage`, { path: "kept" }],
  ["follow.set", `${at}/follow`, { url: "https://git.example.org/acme/shop.git", branch: "evil" }],
  ["follow.delete", `${at}/follow`],
  ["previews.delete", `${at}/previews/staging`],
  ["previews.unpin", `${at}/previews/staging/pin`],
  ["previews.promote", `${at}/previews/staging/promote`],
  ["registries.set", "/v1/registries/registry.example.org", { username: "eve", password: "other" }],
  ["registries.delete", "/v1/registries/registry.example.org"],
  ["people.invite", "/v1/invites", { role: "owner" }],
  ["people.revoke", `/v1/invites/${invite}`],
];

/** Asked for by `test/matrix`, with a file or with things that this platform lacks: a person, an identity, a connection, a backup of files. */
const inMatrix = [
  "ssh-keys.delete",
  "people.update",
  "people.remove",
  "me.leave",
  "backups.restore_path",
  "me.delete_passkey",
  "me.unlink_identity",
  "data.end_connection",
  "disk.write",
];

test("what cannot be undone waits for a person, and nothing is changed meanwhile", async () => {
  const before = await possessions();
  const passed: string[] = [];
  for (const [name, path, body] of gated()) {
    const { status, text } = await tried(route(name).method, path, body);
    if (status !== 403 || !text.includes('"approval_required"')) passed.push(`${name}: ${status} ${text}`);
  }
  assert.deepEqual(passed, []);
  assert.deepEqual(await possessions(), before);
});

test("each write that asks a person is tried here, or needs the platform's operator, which no such token is", async () => {
  const tries = new Set<string>([...gated().map(([name]) => name), ...inMatrix]);
  const asking = Object.entries(losses).flatMap(([name, loss]) =>
    loss === "asks" || "asks_if_it_loses" in Object(loss) ? [name as RouteName] : [],
  );
  assert.deepEqual(
    asking.filter((name) => !tries.has(name) && route(name).access !== "operator"),
    [],
  );
  for (const [method, path, body] of [
    ["POST", "/v1/orgs/main/disable", {}],
    ["POST", "/v1/orgs", { slug: "mine", name: "Mine" }],
    ["POST", "/v1/platform/upgrade", {}],
    ["POST", "/v1/platform/machines", {}],
    ["PUT", `/v1/orgs/main${at.replace("/v1", "")}/disk`, { storage_bytes: 2 ** 30 }],
  ] as const) {
    const { status, text } = await tried(method, path, body);
    assert.match(`${status} ${text}`, /^403 .*operator_only/, path);
  }
});

test("what a person could not judge on a page, or who has more rights gave, is refused", async () => {
  const before = await possessions();
  for (const [method, path, body] of [
    ["DELETE", `/v1/ssh-keys/${sshKey}`],
    ["PUT", `${at}/follow`, { url: "https://git.example.org/evil/shop.git" }],
  ] as const) {
    const { status, text } = await tried(method, path, body);
    assert.match(`${status} ${text}`, /^(?:403|409) .*"(?:forbidden|conflict)"/, path);
  }
  for (const body of [{ preview_variables: ["API_KEY"] }, { preview_data: "branch" }]) {
    const { status, text } = await tried("PUT", `${at}/settings`, body);
    assert.match(`${status} ${text}`, /^403 .*"forbidden"/);
  }
  assert.deepEqual(await possessions(), before);
});

test("an agent cannot approve what it asked for", async () => {
  const { text } = await tried("DELETE", at);
  const { approval } = JSON.parse(text) as { approval: { id: string } };
  const decided = await tried("POST", `/session/decide/${approval.id}`, { choice: "approved" });
  assert.ok(decided.status >= 400, decided.text);
  assert.equal((await platform.call("GET", `/v1/approvals/${approval.id}`)).body["status"], "pending");
});

test("over git it neither deletes nor rewrites a branch, nor deploys what removes data", async () => {
  const before = await possessions();
  await app.commit(files("gone", "drop table orders"));
  const refused = await pushed("HEAD:refs/heads/main");
  assert.match(refused.stderr, /approval_required/);
  await app.git("checkout", "--quiet", "--orphan", "other");
  await app.git("commit", "--quiet", "--message", "Other");
  for (const ref of ["HEAD:refs/heads/main", ":refs/heads/main"]) assert.notEqual((await pushed(ref)).exitCode, 0, ref);
  await app.git("checkout", "--quiet", "main");
  await app.git("reset", "--quiet", "--hard", "HEAD~1");
  assert.deepEqual(await possessions(), before);
});

test("what it may do without asking, one command of a person undoes", async () => {
  const before = await possessions();
  const undo = async (...args: string[]) => {
    const { exitCode, stderr } = await person.berth([...args, "-p", "shop"]);
    assert.equal(exitCode, 0, stderr);
  };
  assert.equal((await tried("PUT", `${at}/env/API_KEY`, { value: "evil" })).status, 204);
  await undo("env", "restore", "API_KEY", "--from", "1", "--wait");
  const cron = { path: "/evil", schedule: "* * * * *", enabled: false };
  assert.equal((await tried("PUT", `${at}/cron/nightly`, cron)).status, 200);
  await undo("cron", "restore", "nightly");
  assert.equal((await tried("PUT", `${at}/maintenance`, { on: true })).status, 200);
  await undo("maintenance", "off");
  assert.deepEqual(await possessions(), before);
  await app.commit(files("defaced", "select 1"));
  const live = await pushed("HEAD:refs/heads/main");
  assert.equal(live.exitCode, 0, live.stderr);
  assert.match(await page(), /^defaced/);
  await undo("rollback");
  assert.equal(await page(), "here first");
  assert.equal((await tried("POST", `${at}/rehearsals`, {})).status, 201);
  assert.equal((await tried("PUT", `${at}/previews/staging/pin`)).status, 200);
  assert.equal((await platform.call("GET", `${at}/data/tables/public/orders`)).body["total"], 1);
});

test("what its release command overwrites or deletes, one command each brings back", async () => {
  const stored = async () => {
    const { body } = await platform.call<{ rows: unknown[] }>("GET", `${at}/data/tables/public/orders/rows`);
    const { body: disk } = await platform.call<{ files: { name: string }[] }>("GET", `${at}/disk/files`);
    return [body.rows, disk.files.some(({ name }) => name === "kept")];
  };
  const undo = async (...args: string[]) => {
    const { exitCode, stderr } = await person.berth([...args, "-p", "shop"]);
    assert.equal(exitCode, 0, stderr);
  };
  const served = async () =>
    (await platform.call<{ active_deployment: { number: number } }>("GET", at)).body.active_deployment.number;
  const [before, good] = [await stored(), await served()];
  const source = files("overwritten", "update orders set id = 7");
  const deletes = `require("fs").rmSync(process.env.STORAGE_DIR + "/kept");\n`;
  await app.commit({ ...source, "release.js": deletes + source["release.js"].replace(/^require.*\n/m, "") });
  const live = await pushed("HEAD:refs/heads/main");
  assert.equal(live.exitCode, 0, live.stderr);
  assert.notDeepEqual(await stored(), before);
  assert.equal((await stored())[1], false);

  await undo("rollback", String(good), "--with-data", "--yes");
  const { body } = await platform.call<{ backups: { id: string; content: string; origin: string }[] }>(
    "GET",
    `${at}/backups`,
  );
  const kept = body.backups.find(({ content, origin }) => content === "files" && origin === "release");
  await undo("disk", "restore", "kept", "--backup", kept?.id ?? "");
  assert.deepEqual(await stored(), before);
  assert.match(await page(), /^here /);
});
