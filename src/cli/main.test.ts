import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "commander";
import { cliUser } from "../../test/support/cli.ts";
import { sampleDeployment, sampleFailure, sampleProject } from "../../test/support/contract-samples.ts";
import { goodToken, Refusal, startScriptedPlatform, type Script } from "../../test/support/scripted-platform.ts";
import type { ErrorCode } from "../contract/errors.ts";
import { createContext } from "./context.ts";
import { readEnvironment } from "./environment.ts";
import { buildProgram } from "./program.ts";
import { wordsOfOthers } from "./words-of-others.ts";

const projects: Script = { "projects.list": () => ({ projects: [sampleProject()] }) };

test("--json prints exactly the API's document on stdout and nothing on stderr", async () => {
  await using platform = await startScriptedPlatform(projects);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stdout, stderr } = await user.berth(["projects", "--json"]);
  assert.equal(exitCode, 0);
  assert.deepEqual(JSON.parse(stdout), { projects: [sampleProject()] });
  assert.equal(stderr, "");
});

test("without --json people get an aligned table without colours or box art when stdout is no terminal", async () => {
  await using platform = await startScriptedPlatform(projects);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stdout } = await user.berth(["projects", "list"]);
  const [head, row] = stdout.split("\n");
  assert.match(stdout, /^[\x20-\x7e\n]+$/);
  assert.equal(head?.indexOf("URL"), row?.indexOf("http://demo"));
});

test("each kind of refusal has its own exit code", async () => {
  const codes: [ErrorCode, number][] = [
    ["operator_only", 1],
    ["invalid_request", 2],
    ["unauthorized", 3],
    ["not_found", 4],
    ["deploy_in_progress", 5],
    ["unavailable", 6],
    ["internal", 6],
    ["previous_unhealthy", 7],
  ];
  let code: ErrorCode = "internal";
  await using platform = await startScriptedPlatform({ "deployments.rollback": () => new Refusal(code) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  for (const [given, expected] of codes) {
    code = given;
    const { exitCode } = await user.berth(["rollback", "-p", "demo"]);
    assert.equal(exitCode, expected, given);
  }
});

test("an error is told with sentence, wrong fields, hint, code and request id", async () => {
  const details = [{ path: "slug", message: "this name is reserved" }];
  await using platform = await startScriptedPlatform({
    "projects.create": () =>
      new Refusal("invalid_request", { error: "The body is wrong.", hint: "Choose another.", details }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stdout, stderr } = await user.berth(["create", "api"]);
  assert.equal(stdout, "");
  for (const part of [
    "The body is wrong.",
    "slug: this name is reserved",
    "Choose another.",
    "invalid_request",
    "req-1",
  ])
    assert.ok(stderr.includes(part), part);
  const asJson = await user.berth(["create", "api", "--json"]);
  assert.equal(asJson.stdout, "");
  assert.deepEqual(JSON.parse(asJson.stderr), {
    error: "The body is wrong.",
    code: "invalid_request",
    hint: "Choose another.",
    details,
    status: 400,
    request_id: "req-1",
  });
});

test("no sentence is said twice: not a wrong field that is the error itself, nor a command that the hint names", async () => {
  const error = "slug: this name is reserved";
  const details = [{ path: "slug", message: "this name is reserved" }];
  const next = { route: "logs.list", method: "GET", path: "/v1/projects/demo/logs" };
  const hint = "`berth logs` shows the last lines.";
  await using platform = await startScriptedPlatform({
    "projects.create": () => new Refusal("invalid_request", { error, details }),
    "processes.restart": () => new Refusal("restart_failed", { error: "It ended.", hint, next }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const refused = await user.berth(["create", "api"]);
  assert.equal(refused.stderr.split("this name is reserved").length, 2, refused.stderr);
  const failed = await user.berth(["restart", "-p", "demo"]);
  assert.equal(failed.stderr.split("berth logs").length, 2, failed.stderr);
});

test("a platform that is not there is exit code 6 and a sentence", async () => {
  const platform = await startScriptedPlatform({});
  await platform[Symbol.asyncDispose]();
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stderr } = await user.berth(["whoami"]);
  assert.equal(exitCode, 6);
  assert.ok(stderr.includes(`Nothing answers at ${platform.url}`), stderr);
});

test("wrong usage is exit code 2, with the command that was meant", async () => {
  await using user = await cliUser();
  const cases: [string[], RegExp][] = [
    [["foo"], /`berth --help` lists the commands/],
    [["service"], /`bin\/berthd service install`/],
    [["projcts"], /Did you mean `berth projects`\?/],
    [["config:set", "KEY=planted-value"], /Berth's command for this is `berth env set KEY=VALUE`/],
    [["-p", "demo", "secrets", "set", "KEY=planted-value"], /`berth env set KEY=VALUE`/],
    [["releases"], /`berth deployments`/],
    [["domains:add", "example.org"], /`berth domains add`/],
    [["logs", "--tail"], /`berth logs -f`/],
    [["logs", "-a", "demo"], /Name the project with `-p <slug>`\./],
    [["config:set", "--app", "demo", "KEY=planted-value"], /`berth env set KEY=VALUE`/],
    [["restart", "web", "demo"], /Name the project with `-p <slug>`\./],
    [["run", "ls", "-l"], /Usage: berth run \[options\] -- <command\.\.\.>\./],
    [["db", "psql", "-c", "select 1"], /Usage: berth db psql \[options\] -- \[arguments\.\.\.\]\./],
    [["domains", "attach", "example.org"], /`berth domains add <hostname>`/],
    [["projects", "shw"], /Did you mean `berth projects show`\?/],
    [["logs", "--folow"], /Did you mean --follow\?/],
    [["api", "projects.lst"], /Did you mean projects\.list\?/],
    [["scale", "nine", "-p", "demo"], /whole number from 1 to 8/],
    [["logs"], /Which project\?/],
    [
      ["webhooks", "add", "chat", "https://example.org/"],
      /Usage: berth webhooks add \[options\] <url>\. `berth webhooks add --help`/,
    ],
    [["-p", "logs", "env", "restore"], /Usage: berth env restore \[options\] <key>/],
    [["env", "--colour"], /`berth env list --help`/],
    [["create"], /Usage: berth create \[options\] <slug>/],
  ];
  for (const [args, expected] of cases) {
    const { exitCode, stderr } = await user.berth(args, { env: { BERTH_TOKEN: goodToken } });
    assert.equal(exitCode, 2, args.join(" "));
    assert.match(stderr, expected);
    assert.ok(!stderr.includes("planted-value"));
  }
  const asJson = await user.berth(["projcts", "--json"]);
  assert.equal(JSON.parse(asJson.stderr).code, "usage");
});

test("the words of other tools lead to commands that Berth has, and none of them is a command itself", () => {
  const program = buildProgram(createContext(readEnvironment({}), new AbortController().signal));
  const find = (words: readonly string[]) =>
    words.reduce<Command | undefined>(
      (found, word) => found?.commands.find((command) => [command.name(), ...command.aliases()].includes(word)),
      program,
    );
  for (const [word, own] of Object.entries(wordsOfOthers)) {
    assert.equal(find(word.split(" "))?.name(), undefined, `${word} is a command now: delete its line`);
    for (const [, line = ""] of [...`${own}\``.matchAll(/\bberth ([^`]*)`/g)]) {
      // Words after an option belong to it: `run -it -- bash`.
      const words = line
        .replace(/ -.*/, "")
        .split(" ")
        .filter((each) => /^[a-z]+$/.test(each));
      assert.ok(own.startsWith("git ") || find(words), `${own}: there is no such command`);
    }
  }
});

test("every command has help with examples", async () => {
  await using user = await cliUser();
  for (const args of [
    ["create"],
    ["projects", "settings"],
    ["deploy"],
    ["logs"],
    ["env", "set"],
    ["rollback"],
    ["tokens", "create"],
    ["keys", "add"],
    ["api"],
  ]) {
    const { exitCode, stdout } = await user.berth([...args, "--help"]);
    assert.equal(exitCode, 0);
    assert.match(stdout, /Examples:\n {2}\$ berth /, args.join(" "));
  }
});

test("projects purge deletes for good, asks for it, and names the backup that stays", async () => {
  const purged = { ...sampleProject({ state: "deleted" }), purged: true, final_backup_id: "bak_1" };
  await using platform = await startScriptedPlatform({ "projects.delete": () => purged });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  assert.equal((await user.berth(["projects", "purge", "demo"])).exitCode, 2);
  assert.equal(platform.seen.length, 0);
  assert.match((await user.berth(["projects", "purge", "demo", "--yes"])).stdout, /gone for good.*bak_1/s);
  assert.equal(platform.seen[0]?.query.get("purge"), "true");
});

const deleted = { ...sampleProject({ state: "deleted" }), purged: false, final_backup_id: null };

test("a destructive command where nobody can be asked needs --yes", async () => {
  await using platform = await startScriptedPlatform({ "projects.delete": () => deleted });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const refused = await user.berth(["projects", "delete", "demo"]);
  assert.equal(refused.exitCode, 2);
  assert.match(refused.stderr, /--yes/);
  assert.equal(platform.seen.length, 0);
  assert.equal((await user.berth(["projects", "delete", "demo", "--yes"])).exitCode, 0);
  assert.deepEqual(
    platform.seen.map(({ name, params }) => [name, params["slug"]]),
    [["projects.delete", "demo"]],
  );
});

test("text of others cannot steer the terminal through a table", async () => {
  const deployment = sampleDeployment({ status: "failed", failure: sampleFailure() });
  await using platform = await startScriptedPlatform({
    "deployments.list": () => ({ deployments: [deployment], next_cursor: null }),
    "projects.get": () => sampleProject({ name: "\x1b]0;owned\x07Demo\x1b[2J" }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  assert.ok(!(await user.berth(["projects", "show", "demo"])).stdout.includes("\x1b"));
  assert.match((await user.berth(["deployments", "-p", "demo"])).stdout, /#1 +failed .*install_failed: npm ci failed/);
});

test("a project shows the folder that is built and the paths that deploy, where they are set", async () => {
  let project = sampleProject({ root: "apps/web", watch: ["apps/web", "shared/**"] });
  await using platform = await startScriptedPlatform({ "projects.get": () => project });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const show = async () => (await user.berth(["projects", "show", "demo"])).stdout;
  assert.match(await show(), /root folder +apps\/web\nwatched +apps\/web, shared\/\*\*\n/);
  project = sampleProject();
  assert.doesNotMatch(await show(), /root folder|watched/);
});

const samplePreview = {
  ...{
    id: "prj_2",
    slug: "staging--demo",
    branch: "staging",
    url: "http://staging--demo.test",
    state: "live" as const,
  },
  ...{ commit: null, created_at: "2026-01-01T00:00:00.000Z", expires_at: null },
};

test("a missing one-off command, deployment or preview is named, with the command that lists them", async () => {
  await using platform = await startScriptedPlatform({
    "runs.cancel": () => new Refusal("not_found"),
    "deployments.rehearsal": () => new Refusal("not_found"),
    "deployments.list": () => ({ deployments: [sampleDeployment({ number: 98 })], next_cursor: null }),
    "previews.promote": () => new Refusal("not_found"),
    "previews.list": () => ({ previews: [samplePreview] }),
    "projects.list": () => ({ projects: [sampleProject()] }),
    "runs.list": () => ({ runs: [], next_cursor: null }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stderr } = await user.berth(["runs", "cancel", "99", "-p", "demo"]);
  assert.equal(exitCode, 4);
  assert.match(stderr, /There is no one-off command "99"[^]*`berth runs`/);
  const rehearsal = await user.berth(["rehearsal", "99", "-p", "demo"]);
  assert.match(rehearsal.stderr, /There is no deployment "99"[^]*`berth deployments`/);
  const promoted = await user.berth(["preview", "promote", "stagin", "-p", "demo"]);
  assert.match(promoted.stderr, /There is no preview "stagin"[^]*Did you mean `staging`\?/);
});

test("what is missing of a deleted project is named, not the project", async () => {
  const gone = sampleProject({ slug: "gone", state: "deleted" });
  await using platform = await startScriptedPlatform({
    "runs.cancel": () => new Refusal("not_found"),
    "projects.list": ({ query }) => ({ projects: query.get("deleted") === "true" ? [gone] : [] }),
    "runs.list": () => ({ runs: [], next_cursor: null }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stderr } = await user.berth(["runs", "cancel", "99", "-p", "gone"]);
  assert.match(stderr, /There is no one-off command "99"/);
});

test("settings that take `none` clear what was set", async () => {
  const bodies: unknown[] = [];
  const script: Script = { "projects.settings": ({ body }) => (bodies.push(body), sampleProject()) };
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const cleared = ["--root", "none", "--port", "none", "--watch", "none"];
  const { exitCode, stderr } = await user.berth(["projects", "settings", "demo", ...cleared]);
  assert.equal(exitCode, 0, stderr);
  assert.deepEqual(bodies, [{ root: null, port: null, watch: null }]);
});

test("the disk of a project without a database shows that it has none, and an unmeasured one that it is not measured", async () => {
  const share = { used_bytes: 4096, limit_bytes: 1024 ** 3 };
  let measured_at: string | null = "2026-01-02T03:04:05.678Z";
  await using platform = await startScriptedPlatform({
    "disk.get": () => ({
      storage: { ...share, access: "open" as const },
      database: { ...share, used_bytes: null, access: "open" as const, reopens_at: null },
      images: share,
      backups: share,
      measured_at,
    }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const disk = async () => (await user.berth(["disk", "-p", "demo"])).stdout;
  assert.match(await disk(), /database +none yet of 1\.0 GiB[^]*backups +4\.0 KiB of 1\.0 GiB/);
  measured_at = null;
  assert.match(await disk(), /database +not measured of 1\.0 GiB/);
});

test("berth api calls any row, with parameters, query and body from where they are given", async () => {
  await using platform = await startScriptedPlatform({
    "env.set": () => undefined,
    "logs.list": () => ({ source: "runtime", lines: [], next_cursor: null }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const set = await user.berth(["api", "env.set", "--param", "slug=demo", "--param", "key=A", "--body", "-"], {
    stdin: '{"value":"planted-value"}',
  });
  assert.deepEqual([set.exitCode, set.stdout], [0, ""]);
  const logs = await user.berth(["api", "logs.list", "-p", "demo", "--query", "limit=5"]);
  assert.deepEqual(JSON.parse(logs.stdout), { source: "runtime", lines: [], next_cursor: null });
  assert.deepEqual(
    platform.seen.map((request) => request.body),
    [{ value: "planted-value" }, undefined],
  );
  assert.equal(platform.seen[1]?.query.get("limit"), "5");
  const wrong = await user.berth(["api", "env.set", "-p", "demo", "--param", "key=A", "--body", "{planted-value"]);
  assert.equal(wrong.exitCode, 2);
  assert.ok(!wrong.stderr.includes("planted-value"));
});
