// Drawn with other builder files: its rules are its own, and .ci/run shows them with every change.
import assert from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { testFolder } from "../../../../test/support/test-folder.ts";
import { attempt } from "../../../ports/builder.suite.ts";
import { silentLog } from "../../../kit/log.ts";
import type { Sandbox } from "../../../sandbox/sandbox.ts";
import { makeTestBuilder, type TestBuilder } from "../../../../test/support/process-builder.ts";
import { compiledCode } from "./compiled-code.ts";

// Prints how many compiled files npm finds, and tries to change them.
const look =
  "ls -d /tmp/node-compile-cache/*/* | wc -l; for each in /tmp/node-compile-cache/*; do touch $each/x; done 2>&1 || true";
const filesOf = (scripts: object) => ({ "package.json": JSON.stringify({ scripts }), "index.js": "" });
const files = filesOf({ build: look, start: "node ." });

let test: TestBuilder;
before(async () => (test = await makeTestBuilder()));
after(() => test.close());

it("gives npm's code, compiled by the platform alone, to every build after the first, and lets none change it", async () => {
  // Other tests have stored compiled code there.
  await rm(join(test.options.toolsDir, "compiled-code"), { recursive: true, force: true });
  await attempt(test.builder, files);
  await test.builder.settle();
  const { lines } = await attempt(test.builder, files);
  const found = Number(lines.map((line) => /^\s*(\d+)$/.exec(line)?.[1]).find((count) => count !== undefined));
  assert.ok(found > 100, lines.join("\n"));
  assert.ok(
    lines.some((line) => line.includes("Read-only file system")),
    lines.join("\n"),
  );
});

it("is no longer compiled once the platform stops", { timeout: 10_000 }, async () => {
  const run = (_: unknown, { signal }: { readonly signal?: AbortSignal }) => sleep(60_000, undefined, { signal });
  const sandbox = { hostUid: () => 0, run } as unknown as Sandbox;
  const folder = testFolder("compiled-code");
  const code = compiledCode({ folder, sandbox, uid: 0, log: silentLog });
  code.make(["node", "npm"].map((name) => ({ name, version: "1.0.0", source: "/", target: "/" })));
  await code.stop();
  assert.deepEqual(await readdir(folder), []);
});

it("does not follow a link that a step has put in the place of that code", async () => {
  const swap = "mv /tmp/node-compile-cache /tmp/moved; ln -s /oldroot/$TARGET /tmp/node-compile-cache";
  const again = { "package.json": JSON.stringify({ scripts: { build: "true", start: "node .", install: swap } }) };
  const { outcome } = await attempt(test.builder, { ...files, ...again }, { env: { TARGET: test.root } });
  assert.equal(outcome.outcome, "built");
  assert.deepEqual(
    (await readdir(test.root)).filter((name) => /^v\d/.test(name)),
    [],
  );
});
