import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { runOk } from "../../src/kit/exec.ts";
import { digestContents, openGreenChecks } from "./green-checks.ts";

let copy = "";

before(async () => {
  copy = await mkdtemp(join(tmpdir(), "berth-green-"));
});
after(() => rm(copy, { recursive: true, force: true }));

async function put(file: string, text: string): Promise<void> {
  await mkdir(dirname(join(copy, file)), { recursive: true });
  await writeFile(join(copy, file), text);
}

test("without git no contents are known, and no check is remembered", async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), "berth-green-"));
  assert.equal(await digestContents(elsewhere, true), null);
  const checks = openGreenChecks(join(elsewhere, "checks.json"));
  checks.add("lint", null);
  assert.equal(checks.has("lint", null), false);
  await rm(elsewhere, { recursive: true });
});

test("contents change with every file that a check reads, and with the installed packages", async () => {
  await runOk({ file: "git", args: ["init", "-q"] }, { cwd: copy });
  await put("src/kit/one.ts", "export const one = 1;\n");
  const digest = () => digestContents(copy, false);
  const first = await digest();
  assert.equal(await digest(), first);
  const withDocuments = await digestContents(copy, true);
  await put("docs/one.md", "one\n");
  assert.equal(await digest(), first);
  assert.notEqual(await digestContents(copy, true), withDocuments);
  for (const [file, text] of [
    ["src/kit/one.ts", "export const one = 2;\n"],
    ["test/new.test.ts", "\n"],
    ["package.json", "{}\n"],
    ["node_modules/.package-lock.json", "{}\n"],
  ] as const) {
    const before = await digest();
    await put(file, text);
    assert.notEqual(await digest(), before, file);
  }
  const before = await digest();
  await rm(join(copy, "test/new.test.ts"));
  assert.notEqual(await digest(), before);
});

test("a check is remembered for the contents that it was green for, and no others", () => {
  const file = join(copy, "cache/checks.json");
  openGreenChecks(file).add("lint", "a");
  openGreenChecks(file).add("types", "b");
  const checks = openGreenChecks(file);
  assert.deepEqual(
    [checks.has("lint", "a"), checks.has("types", "b"), checks.has("lint", "b"), checks.has("names", "a")],
    [true, true, false, false],
  );
});
