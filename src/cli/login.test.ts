import assert from "node:assert/strict";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { sampleMe } from "../../test/support/contract-samples.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

const script = { "me.get": sampleMe, "projects.list": () => ({ projects: [] }) };

test("login keeps a token that works in a file that its owner alone can read, and never prints it", async () => {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser();
  const { exitCode, stdout, stderr } = await user.berth(["login", platform.url, "--token-file", "-"], {
    stdin: `${goodToken}\n`,
  });
  assert.equal(exitCode, 0, stderr);
  assert.equal((await stat(user.configFile)).mode & 0o777, 0o600);
  assert.ok((await readFile(user.configFile, "utf8")).includes(goodToken));
  const later = await user.berth(["whoami"]);
  assert.equal(later.exitCode, 0);
  const contexts = await user.berth(["contexts", "--json"]);
  assert.ok(![stdout, stderr, later.stdout, later.stderr, contexts.stdout].join("").includes(goodToken));
});

test("a token that the platform refuses is not kept", async () => {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser();
  const { exitCode, stderr } = await user.berth(["login", platform.url], { stdin: "berth_m_wrong" });
  assert.equal(exitCode, 3);
  assert.ok(!stderr.includes("berth_m_wrong"));
  await assert.rejects(stat(user.configFile), { code: "ENOENT" });
});

test("on the machine of the platform, login takes the first admin token out of the data folder", async () => {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser();
  const data = join(user.home, "data");
  await mkdir(data);
  await writeFile(join(data, "admin-token"), `${goodToken}\n`, { mode: 0o600 });
  const env = { BERTH_DATA: data, BERTH_HTTP_PORT: new URL(platform.url).port };
  const { exitCode, stdout } = await user.berth(["login"], { env });
  assert.equal(exitCode, 0);
  assert.match(stdout, /platform admin of main/);
  assert.equal((await user.berth(["projects"])).exitCode, 0);
});

test("the admin token of this machine is never sent to another one", async () => {
  await using user = await cliUser();
  await mkdir(join(user.home, ".berth"));
  await writeFile(join(user.home, ".berth", "admin-token"), goodToken);
  const { exitCode, stderr } = await user.berth(["login"], { env: { BERTH_URL: "http://berth.invalid" } });
  assert.equal(exitCode, 3);
  assert.match(stderr, /There is no token|not logged in/);
});

test("an empty token is named as that, and where the platform's own machine keeps one", async () => {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser();
  const { exitCode, stderr } = await user.berth(["login", platform.url], { stdin: "\n" });
  assert.equal(exitCode, 2);
  assert.match(stderr, /what was read is empty[^]*admin-token/);
});

test("a stored token is sent to its own platform only, even when BERTH_URL names another", async () => {
  await using one = await startScriptedPlatform(script);
  await using other = await startScriptedPlatform(script);
  await using user = await cliUser();
  await user.berth(["login", one.url, "--token-file", "-"], { stdin: goodToken });
  const { exitCode } = await user.berth(["projects"], { env: { BERTH_URL: other.url } });
  assert.equal(exitCode, 3);
  assert.equal(other.seen.length, 0);
});

test("several platforms are kept side by side, and logout forgets one", async () => {
  await using one = await startScriptedPlatform(script);
  await using other = await startScriptedPlatform(script);
  await using user = await cliUser();
  await user.berth(["login", one.url, "--context", "one"], { stdin: goodToken });
  await user.berth(["login", other.url, "--context", "other"], { stdin: goodToken });
  await user.berth(["projects", "--context", "one"]);
  assert.equal(one.seen.at(-1)?.name, "projects.list");
  await user.berth(["contexts", "use", "one"]);
  await user.berth(["logout"]);
  const { stdout } = await user.berth(["contexts", "--json"]);
  assert.deepEqual(JSON.parse(stdout), { contexts: [{ name: "other", url: other.url, current: true }] });
  assert.ok((await readFile(user.configFile, "utf8")).split(goodToken).length === 2);
});
