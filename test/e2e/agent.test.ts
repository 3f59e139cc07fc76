import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { runOk, systemPath } from "../../src/kit/exec.ts";
import { consentBrowser, cookieFor } from "../support/consent.ts";
import { eventually, guardMs } from "../support/eventually.ts";
import { connectFromNothing } from "../support/mcp-clients.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";

// Drawn with other journey files: it starts whole platforms, which takes too long for every run.

const mostCalls = 10;

let platform: TestPlatform;
let home: string;
let agent: Client;
let calls = 0;

before(async () => {
  platform = await startPlatform();
  home = mkdtempSync(join(tmpdir(), "berth-agent-"));
  const requestInit = { headers: { authorization: `Bearer ${platform.token}` } };
  agent = new Client({ name: "agent", version: "1" });
  const transport = new StreamableHTTPClientTransport(new URL("/mcp", platform.api), { requestInit });
  await agent.connect(transport as unknown as Transport);
});

after(async () => {
  await agent.close();
  await platform.destroy();
  rmSync(home, { recursive: true, force: true });
});

/** Calls an MCP tool as an agent does and returns the structured result. */
async function tool(name: string, given: Record<string, unknown>, fails = false): Promise<Record<string, unknown>> {
  calls += 1;
  const answer = await agent.callTool({ name, arguments: given }, undefined, { timeout: guardMs });
  assert.equal(answer.isError === true, fails, JSON.stringify(answer.content));
  const { result } = answer.structuredContent as { result?: Record<string, unknown> };
  return result ?? {};
}

async function push(remote: string): Promise<void> {
  const answer = `res.end(process.env.GREETING + " " + (process.env.DATABASE_URL ? "with" : "without") + " database")`;
  await pushFiles(
    home,
    { remote, token: platform.token },
    {
      "package.json": JSON.stringify({ name: "shop", scripts: { start: "node server.js" } }),
      "server.js": `require("http").createServer((req, res) => ${answer}).listen(process.env.PORT);`,
    },
  );
}

/** Commits the files in a folder, which becomes a repository, and pushes them with the token. Returns what git printed. */
async function pushFiles(
  dir: string,
  { remote, token }: { readonly remote: string; readonly token: string },
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const git = (...args: string[]) =>
    runOk({ file: "git", args }, { cwd: dir, env: { PATH: systemPath, HOME: home, GIT_CONFIG_NOSYSTEM: "1" } });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  await git("init", "--initial-branch", "main");
  await git("add", ...Object.keys(files));
  await git("-c", "user.name=agent", "-c", "user.email=agent@example.org", "commit", "--message", "Change");
  const login = Buffer.from(`agent:${token}`).toString("base64");
  return (await git("-c", `http.extraHeader=Authorization: Basic ${login}`, "push", remote, "main")).stderr;
}

test("an agent deploys a new project with a database, a cron job and a verified backup in few calls", async () => {
  const slug = "shop";
  const project = await tool("projects_change", { action: "create", slug, name: "Shop" });
  const database = await tool("database_change", { action: "create", slug });
  assert.equal(database["status"], "ready");
  await tool("env_change", { action: "set", slug, key: "GREETING", value: "hello", wait: true });
  await push((project["git"] as { https: string }).https.replace("localhost", "127.0.0.1"));
  await tool("cron_change", { action: "set", slug, name: "tick", schedule: "* * * * *", path: "/tick" });
  await tool("cron_change", { action: "run", slug, name: "tick" });
  const backup = await tool("backups_change", { action: "create", slug, wait: true });
  assert.equal(backup["status"], "completed");
  const verified = await tool("backups_change", { action: "verify", id: backup["id"] });
  assert.equal(verified["status"], "verified");
  const changed = await tool("env_change", { action: "set", slug, key: "GREETING", value: "good morning", wait: true });
  assert.equal((changed["deployment"] as { status: string }).status, "active");
  assert.deepEqual((await tool("diagnose", { slug }))["findings"], []);
  assert.equal((await platform.visit(slug)).body, "good morning with database");
  assert.ok(calls <= mostCalls, `${calls} calls`);
  await tool("projects_change", { action: "delete", slug });
  const back = await tool("projects_change", { action: "undelete", slug, wait: true });
  assert.equal(back["serving"], true);
  await eventually(async () => (await platform.visit(slug)).status === 200, "the undeleted project serves requests");
});

for (const generation of ["SDK 1", "SDK 2"] as const)
  test(`an agent of ${generation} that knows the address alone connects, and brings up an application with all its parts in ten calls`, async () => {
    const browser = consentBrowser(platform.api, await cookieFor(platform.api, platform.token));
    const client = await connectFromNothing(generation, platform.api, browser);
    let made = 0;
    const call = async (name: string, given: Record<string, unknown>) => {
      made += 1;
      const { isError, content, structuredContent } = await client.callTool(
        { name, arguments: "id" in given ? given : { slug, ...given } },
        undefined as never,
        { timeout: guardMs } as never,
      );
      assert.notEqual(isError, true, JSON.stringify(content));
      return (structuredContent as { result: Record<string, unknown> }).result;
    };
    const slug = generation === "SDK 1" ? "first" : "second";
    await call("projects_change", { action: "create", name: "All parts" });
    assert.equal((await call("database_change", { action: "create" }))["status"], "ready");
    const files = [
      { path: "package.json", text: JSON.stringify({ name: slug }) },
      { path: "Procfile", text: "web: node server.js\nworker: node worker.js\n" },
      { path: "worker.js", text: "setInterval(() => {}, 1e6);" },
      {
        path: "server.js",
        text: `require("http").createServer((req, res) => res.end(process.env.DATABASE_URL ? "stored" : "")).listen(process.env.PORT);`,
      },
    ];
    const { deployment } = await call("deployments_change", { action: "write_files", files, wait: true });
    assert.equal((deployment as Outcome).status, "active");
    await call("cron_change", { action: "set", name: "tick", schedule: "0 0 1 1 *", path: "/tick" });
    await call("cron_change", { action: "run", name: "tick" });
    const domain = await call("domains_change", { action: "attach", hostname: `${slug}.agents.example` });
    assert.equal(domain["hostname"], `${slug}.agents.example`);
    const { id, status } = await call("backups_change", { action: "create", wait: true });
    assert.equal(status, "completed");
    assert.equal((await call("backups_change", { action: "verify", id }))["status"], "verified");
    const { processes } = await call("deployments", { action: "processes" });
    assert.deepEqual(
      (processes as { type: string; running: { state: string }[] }[]).map(({ type, running }) => [
        type,
        running[0]?.state,
      ]),
      [
        ["web", "up"],
        ["worker", "up"],
      ],
    );
    assert.ok(made <= mostCalls, `${made} calls`);
    assert.equal((await platform.visit(slug)).body, "stored");
    const { activity } = (
      await platform.call<{ activity: { action: string; actor: { name: string } }[] }>(
        "GET",
        `/v1/activity?project=${slug}`,
      )
    ).body;
    const creator = activity.find(({ action }) => action === "project.created")?.actor.name;
    assert.equal(creator, "An SDK", "the activity names the program");
    await client.close();
  });

test("an agent without git deploys a new project with a database and a worker, breaks it and repairs it, in few calls", async () => {
  const callsBefore = calls;
  const slug = "bare";
  const write = async (files: readonly { path: string; text: string }[], fails = false) => {
    const given = { action: "write_files", slug, files, wait: true };
    const { build, deployment } = await tool("deployments_change", given, fails);
    return { build, deployment } as { build: Outcome; deployment?: Outcome };
  };
  const server = (body: string) => ({
    path: "server.js",
    text: `require("http").createServer((req, res) => ${body}).listen(process.env.PORT);`,
  });
  await tool("projects_change", { action: "create", slug, name: "Bare" });
  await tool("database_change", { action: "create", slug });
  const live = await write([
    { path: "package.json", text: JSON.stringify({ name: "bare" }) },
    { path: "Procfile", text: "web: node server.js\nworker: node worker.js\n" },
    {
      path: "worker.js",
      text: `console.log("works with", (process.env.DATABASE_URL || "").split(":")[0]); setInterval(() => {}, 1e6);`,
    },
    server(`res.end("first")`),
  ]);
  assert.equal(live.deployment?.status, "active", JSON.stringify(live));
  const { processes } = await tool("deployments", { action: "processes", slug });
  const running = (processes as { type: string; running: { state: string }[] }[]).map((each) => [
    each.type,
    each.running[0]?.state,
  ]);
  assert.deepEqual(running, [
    ["web", "up"],
    ["worker", "up"],
  ]);
  const broken = await write([{ path: "server.js", text: "process.exit(1);" }], true);
  assert.equal(broken.deployment?.status, "failed", JSON.stringify(broken));
  assert.equal((await platform.visit(slug)).body, "first");
  const { findings } = await tool("diagnose", { slug });
  assert.ok((findings as unknown[]).length > 0);
  const { text } = await tool("deployments", { action: "files", slug, path: "server.js" });
  assert.equal(text, "process.exit(1);");
  const mended = await write([server(`res.end("second")`)]);
  assert.equal(mended.deployment?.status, "active", JSON.stringify(mended));
  assert.equal((await platform.visit(slug)).body, "second");
  calls += 1;
  const logs = await agent.callTool({ name: "logs", arguments: { slug, process: "worker" } });
  assert.match(JSON.stringify(logs.content), /works with postgres/);
  assert.ok(calls - callsBefore <= 12, `${calls - callsBefore} calls`);
});

test("what a release command overwrites is in a backup that was complete before, when a token in approval mode pushed or deployed it", async () => {
  const at = "/v1/projects/guarded";
  const { body: project } = await platform.call<{ git: { https: string } }>("POST", "/v1/projects", {
    ...{ slug: "guarded", name: "Guarded" },
  });
  assert.equal((await platform.call("POST", `${at}/database`)).status, 201);
  const made = await platform.call<{ token: string }>("POST", "/v1/api-tokens", {
    name: "careful",
    approval_mode: true,
  });
  const careful = made.body.token;
  const remote = project.git.https.replace("localhost", "127.0.0.1");
  const dir = mkdtempSync(join(home, "guarded-"));
  const release = (
    sql: string,
  ) => `const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
    client.connect().then(() => client.query(${JSON.stringify(sql)})).then(() => client.end());`;
  const backups = async () =>
    (await platform.call<{ backups: Backup[] }>("GET", `${at}/backups`)).body.backups.filter(
      ({ origin }) => origin === "release",
    );
  await pushFiles(
    dir,
    { remote, token: platform.token },
    {
      "package.json": JSON.stringify({ name: "guarded", private: true, dependencies: { pg: "8.23.1" } }),
      Procfile: "web: node server.js\nrelease: node release.js\n",
      "server.js": `require("http").createServer((req, res) => res.end("here")).listen(process.env.PORT);`,
      "release.js": release("create table note (id int); insert into note values (1), (2)"),
    },
  );
  assert.deepEqual(await backups(), []);
  const told = await pushFiles(
    dir,
    { remote, token: careful },
    { "release.js": release("update note set id = id + 10 where id < 10") },
  );
  const [backup] = await backups();
  assert.equal(backup?.status, "completed");
  assert.ok(told.includes(`Backup of the database: ${backup.id}`), told);
  const restored = await platform.call<{ database: string }>("POST", `${at}/restore`, { backup_id: backup.id });
  assert.equal(restored.status, 201, JSON.stringify(restored.body));
  const rowsIn = async (database?: string) =>
    (
      await platform.call<{ rows?: unknown[][] }>("POST", `${at}/database/query`, {
        sql: "select min(id) from note",
        ...(database === undefined ? {} : { database }),
      })
    ).body.rows;
  assert.deepEqual([await rowsIn(), await rowsIn(restored.body.database)], [[[11]], [[1]]]);
  const deployed = await fetch(`${platform.api}${at}/deployments`, {
    ...{ method: "POST", body: "{}" },
    headers: { authorization: `Bearer ${careful}`, "content-type": "application/json" },
  });
  assert.equal(deployed.status, 201, await deployed.text());
  await eventually(
    async () => (await backups()).filter(({ status }) => status === "completed").length === 2,
    "the deploy made a backup, too",
  );
});

interface Backup {
  readonly id: string;
  readonly origin: string;
  readonly status: string;
}

interface Outcome {
  readonly status: string;
}
