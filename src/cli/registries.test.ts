import assert from "node:assert/strict";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

const at = "2026-01-02T03:04:05.678Z";
const registry = { host: "ghcr.io", username: "ada", created_at: at, updated_at: at };

test("a registry's password comes from stdin, never from an argument, and is not printed", async () => {
  await using platform = await startScriptedPlatform({ "registries.set": () => ({ ...registry, login: "accepted" }) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const args = ["registries", "add", "https://ghcr.io/", "--username", "ada"];
  const { exitCode, stdout, stderr } = await user.berth([...args, "--password-stdin"], { stdin: "planted-secret\n" });
  assert.equal(exitCode, 0, stderr);
  const [seen] = platform.seen.filter(({ body }) => body !== undefined);
  assert.deepEqual([seen?.params["host"], seen?.body], ["ghcr.io", { username: "ada", password: "planted-secret" }]);
  assert.doesNotMatch(stdout + stderr, /planted-secret/);
  assert.match((await user.berth(args)).stderr, /--password-stdin/);
});
