import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { sampleDeployment, sampleFailure, sampleProject } from "../../test/support/contract-samples.ts";
import { goodToken, Refusal, startScriptedPlatform, type SeenRequest } from "../../test/support/scripted-platform.ts";
import { mask } from "../contract/env.ts";

const secret = "planted-secret";
const sets = { "env.set": () => undefined, "env.import": () => ({ changed: [], unchanged: [] }) };
const written = (seen: readonly SeenRequest[]) =>
  seen.flatMap(({ name, body }) =>
    name === "env.import" ? Object.entries((body as { variables: Record<string, string> }).variables) : [],
  );

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
    "env.import": () => {
      made = [sampleDeployment({ id: "dep_5", number: 5, trigger: "variables", status: "failed", failure }), before];
      return { changed: ["A"], unchanged: [] };
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
  await using platform = await startScriptedPlatform({ "env.import": () => new Refusal("project_deleted") });
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

test("export prints names alone, and an exported file sets nothing until it is filled in", async () => {
  const variable = { value: mask, updated_at: null } as const;
  const variables = [
    { ...variable, key: "API_KEY", system: false },
    { ...variable, key: "PORT", system: true },
  ];
  await using platform = await startScriptedPlatform({ ...sets, "env.list": () => ({ variables }) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stdout } = await user.berth(["env", "export", "-p", "demo"]);
  assert.equal(stdout, "# API_KEY=\n");
  const unfilled = await user.berth(["env", "import", "-", "-p", "demo"], { stdin: stdout });
  assert.match(unfilled.stderr, /The input has no line KEY=VALUE/);
  assert.deepEqual(written(platform.seen), []);
});

test("import sets the empty value, and asks before it empties a variable that the project has", async () => {
  const variables = [{ key: "API_KEY", value: mask, updated_at: null, system: false } as const];
  await using platform = await startScriptedPlatform({ ...sets, "env.list": () => ({ variables }) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const fresh = await user.berth(["env", "import", "-", "-p", "demo"], { stdin: 'NEW=""\nGREETING=hello\n' });
  assert.match(fresh.stderr, /Set NEW \(empty\), GREETING\./);
  const expected = [
    ["NEW", ""],
    ["GREETING", "hello"],
  ];
  assert.deepEqual(written(platform.seen), expected);
  const asked = await user.berth(["env", "import", "-", "-p", "demo"], { stdin: "API_KEY=\n" });
  assert.match(asked.stderr, /This empties API_KEY of demo.*Add --yes/s);
  assert.deepEqual(written(platform.seen), expected);
  const sure = await user.berth(["env", "import", "-", "-p", "demo", "--yes"], { stdin: "API_KEY=\n" });
  assert.equal(sure.exitCode, 0, sure.stderr);
  assert.deepEqual(written(platform.seen), [...expected, ["API_KEY", ""]]);
});

test("a file with a line that cannot be read sets nothing, and each such line is named", async () => {
  await using platform = await startScriptedPlatform(sets);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  await writeFile(join(user.home, ".env"), `A=1\nJ="{\\"k\\":\\"${secret}\\"}"\nB="${secret}" x\nC='${secret}\n`);
  for (const args of [
    ["env", "import", ".env", "-p", "demo"],
    ["env", "set", "--from-file", ".env", "-p", "demo"],
  ]) {
    const { exitCode, stdout, stderr } = await user.berth(args);
    assert.equal(exitCode, 2);
    assert.match(stderr, /\.env, line 2 \(J\).*line 3 \(B\).*line 4 \(C\).*Nothing was changed/s);
    assert.ok(!`${stdout}${stderr}`.includes(secret));
  }
  assert.deepEqual(platform.seen, []);
});
