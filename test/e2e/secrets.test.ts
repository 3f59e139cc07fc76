// Drawn with other operation files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { lstatSync, readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";
import { after, before, test } from "node:test";
import { superuserConnection } from "../../src/adapters/postgres-host-local/superuser-connection.ts";
import { routes } from "../../src/contract/routes.ts";
import { findPostgres } from "../../src/daemon/setup/find-program.ts";
import { runOk, systemPath } from "../../src/kit/exec.ts";
import { eventually } from "../support/eventually.ts";
import { createApp, type TestApp } from "./platform.ts";
import { inEachWay, startVisitedPlatform, type VisitedPlatform } from "./ways.ts";

const word = () => randomBytes(9).toString("hex");
/** Variables of every shape that a log could contain in another encoding. */
const planted = {
  PLAIN_SECRET: `planted-plain-${word()}`,
  ODD_SECRET: `planted "quoted" back\\slash & per%cent ${word()}`,
  KEY_SECRET: `-----BEGIN PLANTED KEY-----\n${word()}${word()}\n${word()}${word()}\n-----END PLANTED KEY-----`,
};
// Code that leaks the environment: each value alone, all values at once, in pieces, and on both streams.
const tell = `
const names = Object.keys(process.env).filter((name) => /SECRET|DATABASE|PASSWORD/.test(name));
for (const name of names) { console.log("told", name, process.env[name]); console.error(process.env[name]); }
console.log(process.env);
console.log(JSON.stringify(process.env));
console.log(new URLSearchParams(process.env).toString());
const value = process.env.PLAIN_SECRET || "";
process.stdout.write("halves " + value.slice(0, 9));
process.stdout.write(value.slice(9) + "\\n");
`;

function chattyApp(end: { build?: string; boot?: string } = {}): Record<string, string> {
  return {
    "package.json": JSON.stringify({ name: "chatty", private: true, scripts: { build: "node build.js" } }),
    "build.js": `${tell}${end.build ?? ""}`,
    "release.js": tell,
    "server.js": `${tell}${end.boot ?? ""}
require("node:http").createServer((request, response) => {
  ${tell}
  response.end(request.url === "/environment" ? JSON.stringify(process.env) : "hello");
}).listen(process.env.PORT, process.env.HOST);`,
    Procfile: "web: node server.js\nrelease: node release.js\n",
  };
}

let platform: VisitedPlatform;
let app: TestApp;
let secrets: string[];
let pusherSaw = "";
let watch: ReturnType<typeof watchCommandLines>;

inEachWay({ possible: ({ over }) => over === "http" }, (way) => {
  before(async () => {
    pusherSaw = "";
    watch = watchCommandLines();
    platform = await startVisitedPlatform(way, ["chatty"], { BERTH_LOG_LEVEL: "debug" });
    app = await createApp(platform, "chatty", chattyApp());
    const token = await platform.call<{ token: string }>("POST", "/v1/api-tokens", {
      name: "planted",
      expires_in_days: 1,
    });
    await platform.call("POST", "/v1/projects/chatty/database");
    for (const [key, value] of Object.entries(planted)) {
      assert.equal((await platform.call("PUT", `/v1/projects/chatty/env/${key}`, { value })).status, 204);
    }
    await push(0);
    const environment = JSON.parse((await platform.visit("chatty", "/environment")).body) as Record<string, string>;
    const password = new URL(environment["DATABASE_URL"] as string).password;
    const system = [environment["DATABASE_URL"], password, environment["CRON_SECRET"]] as string[];
    assert.ok(system.every((value) => value.length > 20));
    const keys = planted.KEY_SECRET.split("\n").slice(1, 3);
    secrets = [planted.PLAIN_SECRET, planted.ODD_SECRET, ...keys, ...system, platform.token, token.body.token];
    // Failures contain the tail of the log, so make a build and a start fail.
    await app.commit(chattyApp({ build: "process.exit(3);" }));
    await push(1);
    await app.commit(chattyApp({ boot: "process.exit(3);" }));
    await push(1);
    await app.commit(chattyApp());
    await push(0);
    await platform.call("PUT", "/v1/projects/chatty/env/LATER_SECRET", { value: planted.PLAIN_SECRET });
    await eventually(
      async () => (await platform.visit("chatty", "/environment")).body.includes("LATER_SECRET"),
      "the application has restarted with the variable",
    );
    const runtimeLog = async () =>
      (await platform.call<{ lines: unknown[] }>("GET", "/v1/projects/chatty/logs?limit=5000")).body.lines.length;
    await eventually(async () => (await runtimeLog()) > 100, "the application's output has arrived");
  });
  after(() => {
    watch?.stop();
    return platform?.destroy();
  });

  test("the application printed the planted secrets: the logs contain redaction marks", async () => {
    const logs = await platform.call("GET", "/v1/projects/chatty/logs?limit=5000");
    assert.match(JSON.stringify(logs.body), /told PLAIN_SECRET \[redacted\]/);
    assert.match(JSON.stringify(logs.body), /halves \[redacted\]/);
    assert.match(pusherSaw, /told DATABASE_URL \[redacted\]/);
  });

  test("the output of a push contains no secret", () => assertClean(pusherSaw, "the output of git push"));

  test("no response of the API contains a secret", async (t) => {
    const bodies = await everyAnswer();
    t.diagnostic(`${bodies.length} answers`);
    assert.ok(bodies.length > 20);
    for (const { path, text } of bodies) assertClean(text, path);
  });

  test("the platform's own output contains no secret, even at log level debug", () =>
    assertClean(platform.output(), "berthd"));

  test("no file in the data folder contains a secret, except the file of the operator's token", async (t) => {
    const keepers = new Set(["admin-token"]);
    const unclean = () =>
      filesBelow(platform.dataDir).filter(
        (path) => !keepers.has(relative(platform.dataDir, path)) && secretIn(textOf(path)) !== undefined,
      );
    // An application's output stays in a temporary file until the platform has redacted it into the log.
    await eventually(() => unclean().length === 0, "no file contains a secret").catch(() => {});
    for (const path of unclean()) assertClean(textOf(path), path);
    t.diagnostic(`${filesBelow(platform.dataDir).length} files`);
  });

  test("no process had a secret in its arguments during the tests", (t) => {
    const seen = watch.stop();
    t.diagnostic(`${seen.length} command lines`);
    assert.ok(seen.some((line) => line.includes("server.js")));
    for (const line of seen) assertClean(line, "a command line");
  });

  test("a dump of the control database contains no secret", async () => {
    const found = await findPostgres({ searchPath: systemPath, ownFolders: [] });
    const run = readFileSync(join(platform.dataDir, "run-folder"), "utf8");
    const address = { dir: join(platform.dataDir, "control-database"), socketDir: join(run, "control"), port: null };
    const { host, port, user, password, database } = superuserConnection(address);
    const args = ["--host", host, "--port", `${port}`, "--username", user, "--inserts", database];
    const dump = await runOk(
      { file: found?.pgDump ?? "pg_dump", args },
      { env: { PGPASSWORD: password, PATH: "/usr/bin:/bin" }, maxOutputBytes: 64 * 1024 * 1024 },
    );
    assert.match(dump.stdout, /INSERT INTO public\.project_variable/);
    assertClean(dump.stdout, "the dump");
  });
});

async function push(failing: 0 | 1): Promise<void> {
  const pushed = await app.push();
  pusherSaw += pushed.stderr;
  assert.equal(pushed.exitCode === 0 ? 0 : 1, failing, pushed.stderr);
}

/** Returns every encoding of a secret from which a reader could recover it. */
function spellings(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const form = new URLSearchParams({ a: secret }).toString().slice(2);
  return [
    ...new Set([
      secret,
      json,
      form,
      encodeURIComponent(secret),
      Buffer.from(secret).toString("base64"),
      Buffer.from(secret).toString("hex"),
    ]),
  ];
}

function assertClean(text: string, where: string): void {
  const shown = secretIn(text);
  const at = shown === undefined ? -1 : text.indexOf(shown);
  assert.ok(at < 0, `${where} contains a secret: …${text.slice(Math.max(0, at - 80), at + (shown ?? "").length)}`);
}

/** Returns an encoding of a secret that the text contains. */
function secretIn(text: string): string | undefined {
  return secrets.flatMap(spellings).find((spelling) => text.includes(spelling));
}

/** Calls every GET route of the contract, with every id that the lists contain. */
async function everyAnswer(): Promise<{ path: string; text: string }[]> {
  const first = await askAll(["none"], [""]);
  const ids = first.flatMap(({ text }) => text.match(/\b(?:bld|dep|bak|tok|key|apr)_[0-9a-z]+/gi) ?? []);
  const queries = ["", "?limit=500", "?source=build&limit=500", "?range=1h", "?deleted=true"];
  return [...first, ...(await askAll([...new Set(ids)], queries))];
}

async function askAll(ids: readonly string[], queries: readonly string[]): Promise<{ path: string; text: string }[]> {
  const paths = routes.filter(({ method }) => method === "GET").flatMap(({ path }) => fill(path, ids));
  const answers: { path: string; text: string }[] = [];
  for (const path of paths) for (const query of queries) answers.push(await get(path + query));
  return answers;
}

function fill(path: string, ids: readonly string[]): string[] {
  const one = path
    .replace(":slug", "chatty")
    .replace(/:(schema)/, "public")
    .replace(/:(table|name|hostname|database)/, "none");
  return one.includes(":id") ? ids.slice(0, 12).map((id) => one.replace(":id", id)) : [one];
}

async function get(path: string): Promise<{ path: string; text: string }> {
  const response = await fetch(platform.api + path, { headers: { authorization: `Bearer ${platform.token}` } });
  return { path, text: `${response.status} ${[...response.headers].join("\n")} ${await response.text()}` };
}

/** Returns the content of a file, or an empty string if the platform has removed it meanwhile. */
function textOf(path: string): string {
  return unlessRemoved(() => readFileSync(path, "latin1"), "");
}

function filesBelow(folder: string): string[] {
  return namesIn(folder).flatMap((name) => {
    const path = join(folder, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isDirectory()) return filesBelow(path);
    return found?.isFile() === true && found.size < 64 * 1024 * 1024 ? [path] : [];
  });
}

/** Returns the names in a folder, or none if the platform has removed it meanwhile. */
function namesIn(folder: string): string[] {
  return unlessRemoved(() => readdirSync(folder), []);
}

function unlessRemoved<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if (/^(?:ENOENT|ESRCH)$/.test((error as NodeJS.ErrnoException).code ?? "")) return otherwise;
    throw error;
  }
}

/** Reads the arguments of new processes many times a second. Processes that ran before cannot contain the secrets. */
function watchCommandLines() {
  let before = new Set(processIds());
  const seen = new Set<string>();
  const sample = () => {
    const now = new Set(processIds());
    for (const pid of now.difference(before)) seen.add(textOf(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim());
    // Forget ended processes, because their ids can be reused.
    before = before.intersection(now);
  };
  const timer = setInterval(sample, 60).unref();
  return {
    stop() {
      clearInterval(timer);
      return [...seen];
    },
  };
}

function processIds(): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
}
