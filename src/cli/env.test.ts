import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { sampleDeployment, sampleFailure, sampleProject } from "../../test/support/contract-samples.ts";
import { goodToken, Refusal, startScriptedPlatform, type SeenRequest } from "../../test/support/scripted-platform.ts";
import { mask } from "../contract/env.ts";

const secret = "planted-secret";
const sets = { "env.set": () => undefined };
const written = (seen: readonly SeenRequest[]) =>
  seen.map(({ params, body }) => [params["key"], (body as { value: string }).value]);

test("variables come from arguments, from stdin and from a file", async () => {
  await using platform = await startScriptedPlatform(sets);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  await writeFile(join(user.home, ".env"), '# comment\nONE=1\nexport TWO="two words"\n');
  await user.berth(["env", "set", "A=1", "B=x=y", "-p", "demo"]);
  await user.berth(["env", "set", "KEY", "-", "-p", "demo"], { stdin: "line 1\nline 2\n" });
  await user.berth(["env", "set", "--from-file", ".env", "-p", "demo"]);
  const expected = [
    ["A", "1"],
    ["B", "x=y"],
    ["KEY", "line 1\nline 2"],
    ["ONE", "1"],
    ["TWO", "two words"],
  ];
  assert.deepEqual(written(platform.seen), expected);
  // A file as a generator writes it: the command names all forbidden variables at once and sends nothing.
  const generated = await user.berth(["env", "set", "-p", "demo", "A=2", "HOST=0.0.0.0", "PORT=1337"]);
  assert.match(generated.stderr, /The platform sets HOST, PORT itself.*Nothing was changed/s);
  assert.deepEqual(written(platform.seen), expected);
});

test("--wait ends with the deployment that the change leads to, and with its failure", async () => {
  const before = sampleDeployment({ number: 4 });
  let made = [before];
  const failure = sampleFailure({ stage: "boot", code: "crash_on_boot" });
  await using platform = await startScriptedPlatform({
    "env.set": () => {
      made = [sampleDeployment({ id: "dep_5", number: 5, trigger: "variables", status: "failed", failure }), before];
      return undefined;
    },
    "deployments.list": () => ({ deployments: made, next_cursor: null }),
    "projects.get": () =>
      sampleProject({
        active_deployment: { id: "dep_1", number: 4, status: "active", commit: null, activated_at: null },
      }),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stderr } = await user.berth(["env", "set", `A=${secret}`, "--wait", "-p", "demo"]);
  assert.equal(exitCode, 7, stderr);
  assert.match(stderr, /Deployment #5 failed in the stage boot/);
});

test("restore names the deployment whose value comes back, and never shows the value", async () => {
  await using platform = await startScriptedPlatform(sets);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const restored = await user.berth(["env", "restore", "API_KEY", "--from", "#12", "-p", "demo"]);
  assert.equal(restored.exitCode, 0, restored.stderr);
  assert.match(restored.stdout + restored.stderr, /API_KEY has the value of deployment #12 again/);
  const [sent] = platform.seen.filter(({ name }) => name === "env.set");
  assert.deepEqual([sent?.params["key"], sent?.body], ["API_KEY", { from_deployment: 12 }]);
  const wrong = await user.berth(["env", "restore", "API_KEY", "--from", "last", "-p", "demo"]);
  assert.equal(wrong.exitCode, 2);
});

test("unset names a variable that does not exist before it asks, and removes nothing", async () => {
  const variable = { key: "A", value: mask, updated_at: null, system: false } as const;
  await using platform = await startScriptedPlatform({ ...sets, "env.list": () => ({ variables: [variable] }) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stderr } = await user.berth(["env", "unset", "A", "TYPO", "-p", "demo"]);
  assert.equal(exitCode, 4, stderr);
  assert.match(stderr, /demo has no variable TYPO\.\n.*Nothing was changed/);
  assert.ok(platform.seen.every(({ name }) => name !== "env.delete"));
});

test("no error ever repeats a value", async () => {
  await using platform = await startScriptedPlatform({ "env.set": () => new Refusal("project_deleted") });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const wrong = [
    ["env", "set", `A=${secret}`, "-p", "demo"],
    ["env", "set", secret, "-p", "demo"],
    ["env", "set", `--A=${secret}`, "-p", "demo"],
    ["env", "set", `9A=${secret}`, "-p", "demo"],
    ["env", `A=${secret}`, "-p", "demo"],
    ["env", "list", `--A=${secret}`],
    ["set", `A=${secret}`],
  ];
  for (const args of wrong) {
    const { exitCode, stdout, stderr } = await user.berth(args);
    assert.notEqual(exitCode, 0);
    assert.ok(!`${stdout}${stderr}`.includes(secret), args.join(" "));
  }
});

test("nothing is sent when one of several variables is wrong", async () => {
  await using platform = await startScriptedPlatform(sets);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  assert.equal((await user.berth(["env", "set", "A=1", "B-2=2", "-p", "demo"])).exitCode, 2);
  assert.equal((await user.berth(["env", "set", "A=1", "DATABASE_URL=2", "-p", "demo"])).exitCode, 5);
  assert.equal(platform.seen.length, 0);
});

test("after an error in the middle, the keys that were set are named", async () => {
  await using platform = await startScriptedPlatform({
    "env.set": ({ params }) => (params["key"] === "B" ? new Refusal("variables_too_large") : undefined),
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { exitCode, stderr } = await user.berth(["env", "set", "A=1", "B=2", "-p", "demo"]);
  assert.equal(exitCode, 1);
  assert.match(stderr, /Set before the error: A\./);
});

test("export prints names alone, and import sets what has a value and names what has none", async () => {
  const variable = { value: "••••••••", updated_at: null } as const;
  const variables = [
    { ...variable, key: "API_KEY", system: false },
    { ...variable, key: "PORT", system: true },
  ];
  await using platform = await startScriptedPlatform({ ...sets, "env.list": () => ({ variables }) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  assert.equal((await user.berth(["env", "export", "-p", "demo"])).stdout, "API_KEY=\n");
  const stdin = "API_KEY=\nGREETING=hello\nNEW=\n";
  const { exitCode, stderr } = await user.berth(["env", "import", "-", "-p", "demo"], { stdin });
  assert.equal(exitCode, 0, stderr);
  assert.match(stderr, /Neither the file nor the project has a value for NEW\./);
  assert.deepEqual(written(platform.seen.filter(({ name }) => name === "env.set")), [["GREETING", "hello"]]);
});
