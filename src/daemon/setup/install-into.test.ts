import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { installInto } from "./install-into.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "berth-install-"));
});
after(() => rm(folder, { recursive: true, force: true }));

test("an installation that fails halfway leaves nothing", async () => {
  const broken = installInto(join(folder, "broken"), async (content) => {
    await writeFile(join(content, "half"), "");
    throw new Error("the network is gone");
  });
  await assert.rejects(broken, /the network is gone/);
  assert.deepEqual(await readdir(folder), []);
});

test("of two at once one is installed whole and both succeed", async () => {
  const target = join(folder, "raced");
  const install = (text: string) => installInto(target, (content) => writeFile(join(content, "file"), text));
  await Promise.all([install("one"), install("two")]);
  assert.match(await readFile(join(target, "file"), "utf8"), /^(?:one|two)$/);
  assert.deepEqual(await readdir(folder), ["raced"]);
});
