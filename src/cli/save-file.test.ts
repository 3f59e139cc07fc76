import assert from "node:assert/strict";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { goodToken, Refusal, startScriptedPlatform } from "../../test/support/scripted-platform.ts";

test("a file that an application keeps is saved whole, or not at all", async () => {
  let fails = true;
  const parts = ["one ", "two"];
  await using platform = await startScriptedPlatform({
    "disk.read": ({ query }) => {
      const offset = Number(query.get("offset") ?? 0);
      if (offset > 0 && fails) return new Refusal("not_found");
      const base64 = Buffer.from(parts[offset] ?? "").toString("base64");
      return { base64, next_offset: offset + 1 < parts.length ? offset + 1 : null };
    },
  });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const folder = join(user.home, "saved");
  await mkdir(folder);
  const get = () => user.berth(["disk", "get", "notes.txt", "-p", "demo", "--output", "notes.txt"], { cwd: folder });
  assert.notEqual((await get()).exitCode, 0);
  assert.deepEqual(await readdir(folder), []);
  fails = false;
  assert.equal((await get()).exitCode, 0);
  assert.equal(await readFile(join(folder, "notes.txt"), "utf8"), "one two");
  const again = await get();
  assert.match(again.stderr, /notes.txt exists already[^]*-o/);
  assert.equal(await readFile(join(folder, "notes.txt"), "utf8"), "one two");
  assert.equal((await user.berth(["disk", "get", "notes.txt", "-p", "demo"])).stdout, "one two");
});
