import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import pg from "pg";
import type { Result } from "../../src/contract/routes.ts";
import type { Rehearsal } from "../../src/contract/rehearsal.ts";
import { run, systemPath } from "../../src/kit/exec.ts";
import { drawCases, runsAll } from "../support/draw-cases.ts";
import { cliUser } from "../support/cli.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { createApp, startPlatform, type TestApp, type TestPlatform } from "./platform.ts";
import { processesNaming } from "./processes.ts";

// Drawn with other journey files: it starts a whole platform, which takes too long for every run.

type Deployment = Result<"deployments.list">["deployments"][number];

let platform: TestPlatform;
let app: TestApp;
const at = "/v1/projects/shop";

const release = `const fs = require("fs");
fs.writeFileSync(process.env.STORAGE_DIR + "/released-" + (process.env.BERTH_REHEARSAL ?? "0"), process.env.DATABASE_URL);
const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
client.connect().then(() => client.query(fs.readFileSync("change.sql", "utf8"))).then(() => client.end())
  .catch((error) => { console.error(error.code + " " + error.message); process.exit(3); });`;

const server = `require("http").createServer((req, res) =>
  res.end(req.url === "/database" ? process.env.DATABASE_URL : "here")).listen(process.env.PORT);`;

const sqlOf = (change: string) => ({ "change.sql": change });

before(async () => {
  platform = await startPlatform();
  app = await createApp(platform, "shop", {
    "package.json": JSON.stringify({ name: "shop", private: true, dependencies: { pg: "8.23.1" } }),
    Procfile: "web: node server.js\nrelease: node release.js\n",
    "server.js": server,
    "release.js": release,
    ...sqlOf("create table orders (id int primary key, customer int, note text); create table plan (id int)"),
  });
  assert.equal((await platform.call("POST", `${at}/database`)).status, 201);
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.doesNotMatch(pushed.stderr, /Rehears/);
  await query("insert into orders select n, n, 'x' from generate_series(1, 5000) n");
});
after(() => platform?.destroy());

async function query<T = Record<string, unknown>>(sql: string): Promise<T[]> {
  const client = await connect();
  try {
    return (await client.query(sql)).rows as T[];
  } finally {
    await client.end();
  }
}

async function connectedAgent(url: URL, requestInit: RequestInit) {
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }) as unknown as Transport);
  const call = async (name: string, given: Record<string, unknown>) => {
    const { structuredContent, content } = await client.callTool({ name, arguments: given }, undefined, {
      timeout: guardMs,
    });
    return (structuredContent ?? { content }) as Record<string, unknown>;
  };
  return Object.assign(call, { [Symbol.asyncDispose]: () => client.close() });
}

/** Logs in as the application does, whose database may have another port after a restart. */
async function connect(url?: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url ?? (await platform.visit("shop", "/database")).body });
  client.on("error", () => {});
  await client.connect();
  return client;
}

const digest = async () =>
  (await query<{ sum: string }>("select md5(string_agg(o::text, ',' order by id)) as sum from orders o"))[0]?.sum;

async function rehearsal(): Promise<Rehearsal> {
  const { body } = await platform.call<{ deployments: { number: number }[] }>("GET", `${at}/deployments`);
  const answer = await platform.call<{ rehearsal: Rehearsal }>(
    "GET",
    `${at}/deployments/${body.deployments[0]?.number}/rehearsal`,
  );
  assert.equal(answer.status, 200);
  return answer.body.rehearsal;
}

/** Nothing of a copy is left: no folder, no process, no file. */
async function assertCleared(): Promise<void> {
  await eventually(async () => {
    const instances = join(platform.dataDir, "databases");
    const folders = readdirSync(instances).filter((id) => existsSync(join(instances, id, "clone")));
    const files = readdirSync(join(platform.dataDir, "storage")).filter((name) => name.startsWith("rehearsal-"));
    return folders.length + files.length === 0;
  }, "the copies are gone");
}

async function change(sql: string) {
  await app.commit(sqlOf(sql));
  return app.push();
}

test("a release command that fails on the copy is refused; data, files and live version stay as they are", async () => {
  const before = await digest();
  const pushed = await change(
    "alter table orders alter column customer type bigint; update orders set customer = 1 / (4000 - id)",
  );
  assert.notEqual(pushed.exitCode, 0);
  assert.match(pushed.stderr, /Rehearsing on a copy of [\d.]+ MiB/);
  assert.match(pushed.stderr, /22012 division by zero/);
  assert.match(
    pushed.stderr,
    /Refused: the release command failed on a copy of the data.*Production was not touched\./,
  );
  assert.equal(await digest(), before);
  const { status, report } = await rehearsal();
  assert.deepEqual([status, report?.exit_code], ["failed", 3]);
  assert.equal((await platform.visit("shop")).body, "here");
  await assertCleared();
});

test("one that passes is reported, then runs on the data with a limit for locks; the files it got were a copy", async () => {
  const sql =
    "alter table orders alter column customer type bigint; create index on orders (customer); select pg_sleep(0.5)";
  const pushed = await change(sql);
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.match(
    pushed.stderr,
    /orders: reads and writes blocked for [\d.]+ s \(longest: .+?\), 5,000 rows rewritten, column customer is now bigint, index orders_customer_idx added/,
  );
  const { status, report, method } = await rehearsal();
  const orders = report?.tables.find(({ table }) => table === "public.orders");
  assert.deepEqual(
    [status, orders?.change, orders?.rows_before, orders?.rows_after],
    ["passed", "rewritten", 5000, 5000],
  );
  assert.ok(method);
  const project = join(platform.dataDir, "storage");
  const written = readdirSync(project).flatMap((name) => readdirSync(join(project, name)));
  assert.deepEqual(written, ["released-0"]);
  const types = await query("select data_type from information_schema.columns where column_name = 'customer'");
  assert.deepEqual(types, [{ data_type: "bigint" }]);
  const ofCommand = join(project, readdirSync(project)[0] ?? "", "released-0");
  const client = await connect(readFileSync(ofCommand, "utf8"));
  assert.deepEqual((await client.query("show lock_timeout")).rows, [{ lock_timeout: "5s" }]);
  await client.end();
  await assertCleared();
});

test("when a lock is not free on the data, the command is tried again", async () => {
  const holder = await connect();
  await holder.query("begin; lock table plan");
  await app.commit(sqlOf("alter table plan add column name text"));
  let freed: Promise<unknown> | undefined;
  const pushed = await app.push("main", (chunk) => {
    if (/trying again in 1 s/.test(String(chunk))) freed ??= holder.query("rollback");
  });
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.match(pushed.stderr, /55P03 canceling statement due to lock timeout/);
  await freed;
  await holder.end();
});

/** What a release command tries on its copy, and through the address of the data that an earlier one wrote into a file. */
const hostile = `const { spawn } = require("child_process");
const fs = require("fs");
const tries = async (url, ...statements) => {
  const client = new (require("pg").Client)({ connectionString: url, connectionTimeoutMillis: 3000 });
  client.on("error", () => {});
  const refused = await client.connect().then(() => null, (error) => error);
  if (refused) return console.log("no way in: " + (refused.code ?? refused.message));
  for (const statement of statements)
    await client.query(statement).then(() => console.log("did " + statement), (error) => console.log(error.code + " for " + statement));
  await client.end().catch(() => {});
};
(async () => {
  for (let n = 0; n < 5; n += 1) spawn("sleep", ["86399"], { detached: true, stdio: "ignore" }).unref();
  await Promise.all(Array.from({ length: 30 }, () => tries(process.env.DATABASE_URL, "select 1")));
  const user = new URL(process.env.DATABASE_URL).username;
  const database = new URL(process.env.DATABASE_URL).pathname.slice(1);
  await tries(process.env.DATABASE_URL, "drop database " + database, "drop database postgres", "drop database template1");
  for (const other of ["postgres", "template1"])
    await tries(process.env.DATABASE_URL.replace("/" + database, "/" + other), "drop database " + database);
  await tries(process.env.DATABASE_URL, "delete from orders", "copy orders to program 'cat > /tmp/taken'", "copy orders to '/tmp/taken'",
    "set role berth", "alter role " + user + " superuser", "alter role " + user + " password 'mine'", "alter system set fsync = off");
  await tries(fs.readFileSync(process.env.STORAGE_DIR + "/released-0", "utf8"), "drop database " + database);
  process.exit(3);
})();`;

test("what a release command tries on its copy harms nothing but the copy, and nothing of it stays", async () => {
  const before = await digest();
  await app.commit({ ...sqlOf("select 1"), "release.js": hostile });
  const pushed = await app.push();
  await app.commit({ "release.js": release });
  assert.notEqual(pushed.exitCode, 0);
  assert.match(pushed.stderr, /did delete from orders/);
  for (const refused of [
    "copy orders to program",
    "copy orders to '",
    "set role berth",
    String.raw`alter role \S+ superuser`,
  ])
    assert.match(pushed.stderr, new RegExp(`42501 for ${refused}`));
  // Its own database, those that every server has, its own from within those, and the project's.
  const drops = pushed.stderr.match(/\w+ for drop database|no way in: \w+/g);
  const denied = "42501 for drop database";
  const closed = "no way in: 42501";
  assert.deepEqual(drops, [denied, denied, denied, closed, closed, "no way in: ECONNREFUSED"], pushed.stderr);
  assert.doesNotMatch(pushed.stderr, /did (?:drop|copy|set role|alter system)/);
  assert.match(pushed.stderr, /Production was not touched/);
  assert.equal(await digest(), before, "the data is there, and its password is what it was");
  assert.deepEqual(processesNaming("sleep 86399"), []);
  await assertCleared();
});

test("one that hangs is ended and refused on the copy; a lock that nobody frees leaves the schema as it was", async () => {
  await platform.end("SIGINT");
  await platform.restart({ BERTH_BUILD_SECONDS: "45" });
  const hanging = await change("lock table orders; select pg_sleep(86399)");
  assert.notEqual(hanging.exitCode, 0);
  assert.match(hanging.stderr, /Production was not touched/);
  await assertCleared();
  const holder = await connect();
  // A role's sessions end after a minute in which their transactions do nothing.
  await holder.query("set idle_in_transaction_session_timeout = 0; begin; lock table plan");
  const waiting = await change("alter table plan add column unseen text");
  await holder.query("rollback");
  await holder.end();
  assert.notEqual(waiting.exitCode, 0);
  assert.deepEqual(
    waiting.stderr.match(/trying again in \d+ s/g),
    [1, 5, 15].map((s) => `trying again in ${s} s`),
  );
  assert.deepEqual(await query("select 1 from information_schema.columns where column_name = 'unseen'"), []);
  assert.equal((await platform.visit("shop")).body, "here");
  await rehearseBranch("endless", { "release.js": `setInterval(() => console.log("more"), 1000);` });
  assert.equal((await rehearsal()).reason, "The rehearsal took longer than 45 s.");
  await platform.end("SIGINT");
  await platform.restart();
});

/** Rehearses a new branch with these files on request. */
async function rehearseBranch(branch: string, files: Record<string, string>): Promise<Deployment> {
  await app.git("checkout", "-b", branch);
  await app.commit(files);
  const stored = await app.push(branch);
  assert.equal(stored.exitCode, 0, stored.stderr);
  await app.git("checkout", "main");
  const asked = await platform.call<{ build_id: string }>("POST", `${at}/rehearsals`, { branch });
  assert.equal(asked.status, 201);
  return eventually(async () => {
    const { body } = await platform.call<{ deployments: Deployment[] }>("GET", `${at}/deployments`);
    return body.deployments.find(
      ({ build_id, status }) => build_id === asked.body.build_id && !["pending", "starting"].includes(status),
    );
  }, "the rehearsal has ended");
}

test("a branch is rehearsed on request, and nothing of it goes live", async () => {
  const rehearsed = await rehearseBranch("drops", { ...sqlOf("drop table plan"), "server.js": "process.exit(1)" });
  assert.deepEqual([rehearsed.status, rehearsed.rehearse_only, rehearsed.failure], ["superseded", true, null]);
  const { status, report } = await rehearsal();
  assert.equal(status, "passed");
  assert.deepEqual(
    report?.tables.map(({ table, change: what }) => [table, what]),
    [["public.plan", "dropped"]],
  );
  assert.deepEqual(await query("select count(*)::int from plan"), [{ count: 0 }]);
  assert.equal((await platform.visit("shop")).body, "here");
  const refused = await platform.call<{ code: string }>("POST", `${at}/rehearsals`, { branch: "nope" });
  assert.deepEqual([refused.status, refused.body.code], [409, "nothing_to_deploy"]);
  await assertCleared();
});

test("an agent rehearses files that were not pushed, and the next change does not begin at them", async () => {
  const { token } = platform;
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await using agent = await connectedAgent(new URL("/mcp", platform.api), requestInit);
  const { commit } = (await platform.call<{ commit: string }>("GET", `${at}/source`)).body;
  const files = [{ path: "change.sql", text: "drop table plan" }];
  const plan = await agent("deployments", { action: "plan", slug: "shop", files });
  assert.match(JSON.stringify(plan), /deployments_change with .*rehearse/);
  const said = await agent("deployments_change", { action: "rehearse", slug: "shop", files, wait: true });
  const { rehearsal: found, deployment } = said["result"] as { rehearsal: Rehearsal; deployment: Deployment };
  assert.deepEqual([found.status, found.report?.tables[0]?.change], ["passed", "dropped"]);
  assert.ok(deployment.rehearse_only);
  assert.deepEqual((await platform.call("GET", `${at}/source`)).body["commit"], commit);
  assert.deepEqual(await query("select count(*)::int from plan"), [{ count: 0 }]);
  await assertCleared();
});

test("killed while the copy is used, nothing of it is left, and the next push works", async () => {
  const before = await digest();
  await app.commit(sqlOf("delete from orders; select pg_sleep(600)"));
  let killed: Promise<void> | undefined;
  const pushing = app.push("main", (chunk) => {
    if (/Rehearsing on a copy/.test(String(chunk))) killed ??= killOnceRunning();
  });
  assert.notEqual((await pushing).exitCode, 0);
  await killed;
  await platform.restart();
  await assertCleared();
  assert.equal(await digest(), before);
  const { status, reason } = await rehearsal();
  assert.deepEqual([status, reason], ["skipped", "The platform restarted meanwhile."]);
  const pushed = await change("select 1");
  assert.equal(pushed.exitCode, 0, pushed.stderr);
});

async function killOnceRunning(): Promise<void> {
  const instances = join(platform.dataDir, "databases");
  await eventually(
    async () => readdirSync(instances).some((id) => existsSync(join(instances, id, "clone", "running.json"))),
    "the copy runs",
  );
  await platform.end("SIGKILL");
}

test("what an agent's deploy would remove needs a person, who sees the report; then the same commit goes live", async () => {
  const made = await platform.call<{ token: string }>("POST", "/v1/api-tokens", { name: "agent", approval_mode: true });
  const login = Buffer.from(`agent:${made.body.token}`).toString("base64");
  const pushAsAgent = () =>
    run(
      {
        file: "git",
        args: [
          ...["-c", `http.extraHeader=Authorization: Basic ${login}`],
          ...["push", `${platform.api}/git/main/shop.git`, "HEAD:refs/heads/main"],
        ],
      },
      { cwd: app.dir, env: { PATH: systemPath, HOME: app.dir, GIT_CONFIG_GLOBAL: "/dev/null" } },
    );
  await app.commit({
    ...sqlOf("alter table orders drop column note; delete from orders where id > 4000"),
    "berth.json": `{"rehearse":"never"}`,
  });
  const refused = await pushAsAgent();
  assert.notEqual(refused.exitCode, 0);
  assert.match(refused.stderr, /would remove data: orders: .*column note dropped, 1,000 rows removed/);
  assert.match(refused.stderr, /approval_required/);
  assert.equal((await query<{ count: number }>("select count(*)::int from orders"))[0]?.count, 5000);
  await approve();
  const passed = await pushAsAgent();
  assert.equal(passed.exitCode, 0, passed.stderr);
  assert.match(passed.stderr, /Approved by a person: apr_/);
  assert.equal((await query<{ count: number }>("select count(*)::int from orders"))[0]?.count, 4000);
});

test("a person's deploy is rehearsed as berth.json says", async () => {
  const pushed = await change("select 2");
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.match(pushed.stderr, /Not rehearsed: berth\.json says `rehearse: never`/);
});

const reading = (column: string) => ({
  "server.js": `const { Client } = require("pg");
require("http").createServer(async (req, res) => {
  if (req.url === "/database") return res.end(process.env.DATABASE_URL);
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  try {
    await client.connect();
    const { rows } = await client.query("select count(*)::int as n, max(${column}) as last from items");
    res.end("${column} " + JSON.stringify(rows[0]));
  } catch { res.writeHead(500).end(); } finally { await client.end(); }
}).listen(process.env.PORT);`,
});

test("a rollback with the data undoes a migration that the code of before does not fit, in one command", async () => {
  assert.equal((await platform.call("PUT", `${at}/settings`, { start_seconds: 3 })).status, 200);
  await query("create table items (id int, note text); insert into items values (1, 'a'), (2, 'b')");
  await app.commit({ ...reading("note"), ...sqlOf("select 1"), "release.js": release });
  assert.equal((await app.push()).exitCode, 0);
  const active = async () =>
    (await platform.call<Result<"projects.get">>("GET", at)).body.active_deployment?.number ?? 0;
  const good = await active();
  await app.commit({
    ...reading("memo"),
    ...sqlOf("delete from items where id = 2; alter table items rename note to memo"),
  });
  assert.equal((await app.push()).exitCode, 0);
  const bad = await active();
  assert.equal((await platform.visit("shop")).body, 'memo {"n":1,"last":"a"}');

  const alone = await platform.call<{ code: string; hint: string }>("POST", `${at}/rollback`, { deployment: good });
  assert.deepEqual([alone.status, alone.body.code], [502, "previous_unhealthy"]);
  assert.match(alone.body.hint, new RegExp(`\`berth rollback ${good} --with-data\``));

  await using user = await cliUser({ url: platform.api, token: platform.token });
  const asked = await user.berth(["rollback", String(good), "--with-data", "-p", "shop"]);
  assert.equal(asked.exitCode, 2, "the data changes, so it asks");
  const back = await user.berth(["rollback", String(good), "--with-data", "-p", "shop", "--yes"]);
  assert.equal(back.exitCode, 0, back.stderr);
  assert.equal((await platform.visit("shop")).body, 'note {"n":2,"last":"b"}');
  const undo = new RegExp(`berth (backups promote \\w+ --deployment ${bad})`).exec(back.stderr)?.[1] ?? "";
  const made = await platform.call<{ token: string }>("POST", "/v1/api-tokens", {
    name: "copies",
    role: "owner",
    scopes: ["backups:write"],
  });
  const env = { BERTH_TOKEN: made.body.token };
  const refused = await user.berth([...undo.split(" "), "-p", "shop", "--yes"], { env });
  assert.match(refused.stderr, /lacks the scope deployments:write/);
  const forward = await user.berth([...undo.split(" "), "-p", "shop", "--yes"]);
  assert.equal(forward.exitCode, 0, forward.stderr);
  assert.equal((await platform.visit("shop")).body, 'memo {"n":1,"last":"a"}');

  await query("drop table items");
  assert.equal((await platform.call("PUT", `${at}/settings`, { start_seconds: null })).status, 200);
  await app.commit({ "server.js": server, ...sqlOf("select 1") });
  assert.equal((await app.push()).exitCode, 0);
});

/** Half of them run on the data itself; of each half, a quarter is killed with `kill -9`, and a quarter loses the control plane. */
const failing = Array.from({ length: 50 }, (_, n) => ({
  n,
  rehearse: n % 2 === 0 ? "always" : "never",
  killed: (["nothing", "nothing", "the migration", "the platform"] as const)[Math.floor(n / 2) % 4],
}));

test("a migration that fails late leaves schema and data as they were, on a copy or not, also with kill -9", async () => {
  const rows = runsAll ? 1_000_000 : 100_000;
  const last = rows * 0.9;
  await query(`create table big as select n as id, 0 as v from generate_series(1, ${rows}) n`);
  const state = async () => {
    const columns =
      "select string_agg(attname::text, ',' order by attnum) from pg_attribute where attrelid = 'big'::regclass";
    return query(
      `select count(*)::int, sum(v)::int, sum(hashtext(b::text))::text as hash, (${columns}) as columns from big b`,
    );
  };
  const before = await state();
  const wrong: unknown[] = [];
  for (const { n, rehearse, killed } of drawCases(failing, 3)) {
    const sql = `alter table big add column c${n} int default 1; update big set v = v + 1 where id < ${last};
      select pg_sleep(${killed === "nothing" ? 0 : 8}); update big set v = 1 / (id - ${last}) where id >= ${last}`;
    const kill = killed === "the migration" ? `setTimeout(() => process.kill(process.pid, "SIGKILL"), 4000);\n` : "";
    await app.commit({ ...sqlOf(sql), "release.js": kill + release, "berth.json": JSON.stringify({ rehearse }) });
    const pushing = app.push();
    if (killed === "the platform") {
      await (rehearse === "always" ? killOnceRunning() : killOnceSleeping());
      await platform.restart();
    }
    const { exitCode } = await pushing;
    const after = await state();
    if (exitCode === 0 || !isDeepStrictEqual(after, before)) wrong.push({ n, rehearse, killed, exitCode, after });
  }
  assert.deepEqual(wrong, []);
  assert.equal((await platform.visit("shop")).body, "here");
  await assertCleared();
});

async function killOnceSleeping(): Promise<void> {
  const asked = "select 1 from pg_stat_activity where query like '%pg_sleep(8)%' and pid <> pg_backend_pid()";
  await eventually(async () => (await query(asked)).length > 0, "the migration runs on the data");
  await platform.end("SIGKILL");
}

/** Decides as the person who got the link. */
async function approve(): Promise<void> {
  const outbox = join(platform.dataDir, "outbox");
  const file = await eventually(
    async () => readdirSync(outbox).find((name) => name.includes("-approval-")),
    "a person is asked",
  );
  const link = /http:\S+\/decide\/[\w-]{43}/.exec(readFileSync(join(outbox, file), "utf8"))?.[0] ?? "";
  const page = new URL(new URL(link).pathname, platform.api).href;
  const html = await (await fetch(page)).text();
  assert.match(html, /What it did to a copy of the data.*orders: .*column note dropped/s);
  const nonce = /name="nonce" value="([\w-]+)"/.exec(html)?.[1] ?? "";
  const body = new URLSearchParams({ choice: "approved", nonce });
  const decided = await fetch(page, { method: "POST", headers: { origin: new URL(link).origin }, body });
  assert.equal(decided.status, 200);
}
