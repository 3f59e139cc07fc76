import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
import { saveFile } from "./save-file.ts";
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

test("what replaces a file goes through a link, and a device is written to, not replaced", async (t) => {
  const cwd = await mkdtemp(join(tmpdir(), "berth-save-"));
  t.after(() => rm(cwd, { recursive: true }));
  const save = (name: string) =>
    saveFile({ environment: { cwd } as never }, name, { replaces: true }, async (target) => {
      target.end("new");
      await once(target, "close");
    });
  await writeFile(join(cwd, "old"), "old");
  await symlink("old", join(cwd, "link"));
  await save("link");
  assert.equal(await readFile(join(cwd, "old"), "utf8"), "new");
  await symlink("/dev/null", join(cwd, "device"));
  await save("device");
  assert.ok((await stat("/dev/null")).isCharacterDevice());
  assert.deepEqual((await readdir(cwd)).toSorted(), ["device", "link", "old"]);
});
