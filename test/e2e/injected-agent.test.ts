import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { run, systemPath } from "../../src/kit/exec.ts";
import { cliUser, type CliUser } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
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
const tokens: string[] = [];

const files = (page: string, change: string) => ({
  "package.json": JSON.stringify({ name: "shop", private: true, dependencies: { pg: "8.23.1" } }),
  Procfile: "web: node server.js\nrelease: node release.js\n",
  "server.js": `require("http").createServer((req, res) => res.end("${page} " + process.env.API_KEY)).listen(process.env.PORT);`,
  "release.js": `const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
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
  person = await cliUser({ url: platform.api, token: platform.token });
});
after(async () => {
  await person?.[Symbol.asyncDispose]();
  await platform?.destroy();
});

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
    (await get(`${at}/data/tables/public/orders`))["total"],
    await page(),
    await app.remoteHead(),
  ];
}

test("what cannot be undone waits for a person, and nothing is changed meanwhile", async () => {
  const before = await possessions();
  const attempts: readonly (readonly [string, string, object?])[] = [
    ["DELETE", at],
    ["DELETE", `${at}/env/API_KEY`],
    ["DELETE", `${at}/domains/shop.example.org`],
    ["DELETE", `${at}/cron/nightly`],
    ["DELETE", `/v1/webhooks/${hook}`],
    ["PATCH", `/v1/webhooks/${hook}`, { enabled: false }],
    ["PATCH", `/v1/webhooks/${hook}`, { url: "https://elsewhere.example.org/x" }],
    ["DELETE", `/v1/api-tokens/${key}`],
    ["POST", "/v1/api-tokens", { name: "free", role: "owner" }],
    ["PATCH", rows, { key: { id: 1 }, values: { id: 2 } }],
    ["DELETE", rows, { key: { id: 1 } }],
    ["POST", `${at}/runs`, { command: "rm -rf $STORAGE_DIR" }],
    ["POST", `${at}/database/sessions`, {}],
    ["POST", `${at}/database/branches`, { name: "all" }],
    ["POST", `${at}/restore`, { backup_id: backup }],
    ["PUT", `${at}/follow`, { url: "https://git.example.org/evil/shop.git" }],
  ];
  const passed: string[] = [];
  for (const [method, path, body] of attempts) {
    const { status, text } = await tried(method, path, body);
    if (status !== 403 || !text.includes('"approval_required"')) passed.push(`${method} ${path}: ${status} ${text}`);
  }
  assert.deepEqual(passed, []);
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
  assert.equal((await platform.call("GET", `${at}/data/tables/public/orders`)).body["total"], 1);
});
