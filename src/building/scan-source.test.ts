import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../../test/support/test-folder.ts";
import { scanSource } from "./scan-source.ts";

const root = testFolder("source");

/** Returns those of these links that the scan drops. A link's target is given as text. */
async function dropped(name: string, links: Record<string, string>): Promise<readonly string[]> {
  for (const [path, target] of Object.entries(links)) {
    await mkdir(dirname(join(root, name, path)), { recursive: true });
    await symlink(target, join(root, name, path));
  }
  return (await scanSource(join(root, name))).droppedLinks;
}

/** Scans a source of these files. */
async function scanned(name: string, files: Record<string, string>) {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, name, path)), { recursive: true });
    await writeFile(join(root, name, path), text);
  }
  return (await scanSource(join(root, name))).tree;
}

test("a text that nobody writes by hand is there, but not looked into", async () => {
  const tree = await scanned("long", { "settings.py": "\n".repeat(16 * 1024 * 1024), "app.py": "x = 1" });
  assert.deepEqual([tree.has("settings.py"), tree.text("settings.py"), tree.text("app.py")], [true, null, "x = 1"]);
});

test("of many texts those nearest to the root are kept, 8 MiB in all", async () => {
  const text = "#".repeat(250 * 1024);
  const names = Array.from({ length: 40 }, (_, index) => `a/${index}.py`);
  const tree = await scanned("many", Object.fromEntries([...names, "z.py"].map((path) => [path, text])));
  assert.equal(tree.text("z.py"), text);
  assert.equal(names.filter((path) => tree.text(path) !== null).length, 31);
});

test("of a lock file only the digest and the beginning are kept, however long it is", async () => {
  const lock = `lockfileVersion: '9.0'\n${"#".repeat(2 * 1024 * 1024)}`;
  const found = (await scanned("locked", { "pnpm-lock.yaml": lock })).lock("pnpm-lock.yaml");
  assert.match(found?.beginning ?? "", /^lockfileVersion: '9\.0'\n/);
  assert.equal(found?.digest, hash("sha256", lock));
  assert.ok((found?.beginning.length ?? 0) < 10_000);
});

test("a lock file that is a link is not followed", async () => {
  await scanned("linked", { other: "lock" });
  await symlink("other", join(root, "linked", "package-lock.json"));
  const { tree } = await scanSource(join(root, "linked"));
  assert.deepEqual([tree.has("package-lock.json"), tree.lock("package-lock.json")], [true, null]);
});

test("a link may lead anywhere below the root", async () => {
  const links = { a: "deep/folder", "deep/up": "../a", "deep/er/top": "../..", "deep/er/self": "./x//y" };
  assert.deepEqual(await dropped("inside", links), []);
});

test("a link may not lead above the root or be absolute", async () => {
  const links = { "deep/link": "../../x", absolute: "/etc/passwd", good: "deep" };
  assert.deepEqual(await dropped("above", links), ["absolute", "deep/link"]);
  assert.deepEqual((await readdir(join(root, "above"))).sort(), ["deep", "good"]);
  assert.deepEqual((await scanSource(join(root, "above"))).tree.paths, ["good"]);
});

test("a link may not climb behind a name, which may be a link that is not as deep as it looks", async () => {
  assert.deepEqual(await dropped("climbing", { s: ".", "t/out": "../s/s/s/../../../etc/x" }), ["t/out"]);
});

test("a scan that is stopped goes into no further folder", async () => {
  const name = "stopped";
  await scanned(name, { "a/b/c.txt": "c" });
  const stop = new AbortController();
  const scan = scanSource(join(root, name), stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(scan, /stopped/);
});
