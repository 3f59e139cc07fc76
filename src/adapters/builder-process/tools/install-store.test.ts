import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openTrash, type Trash } from "../steps/trash.ts";
import { installStoreKey, openInstallStore } from "./install-store.ts";

let root: string;
let trash: Trash;
const isRoot = process.geteuid?.() === 0;
const uid = isRoot ? 70_001 : (process.geteuid?.() ?? 0);

before(async () => {
  root = await mkdtemp(join(tmpdir(), "berth-installs-"));
  trash = await openTrash(join(root, "trash"));
});
after(async () => {
  await trash.settle();
  await rm(root, { recursive: true });
});

/** Creates the folder that an install leaves. */
async function installed(name: string, text = "content"): Promise<string> {
  const folder = join(root, name);
  await mkdir(join(folder, "a"), { recursive: true });
  await writeFile(join(folder, "a", "index.js"), text);
  return folder;
}

const storeOf = (name: string, mostBytes?: number) =>
  openInstallStore({ folder: join(root, name), trash, ...(mostBytes === undefined ? {} : { mostBytes }) });

test("a project gets a copy of its own: what it writes, no other project gets", async () => {
  const store = await storeOf("copies");
  await store.keep("key", await installed("first"));
  const [one, other] = [join(root, "one"), join(root, "other")];
  assert.equal(await store.copy("key", one, uid), true);
  await writeFile(join(one, "a", "index.js"), "changed");
  assert.equal(await store.copy("key", other, uid), true);
  assert.equal(await readFile(join(other, "a", "index.js"), "utf8"), "content");
  assert.equal((await stat(join(other, "a", "index.js"))).uid, uid);
  assert.equal(await store.copy("another", join(root, "none"), uid), false);
});

test("only the platform reaches what is kept", async () => {
  const store = await storeOf("closed");
  await store.keep("key", await installed("second"));
  assert.equal((await stat(join(root, "closed"))).mode & 0o777, 0o700);
  const kept = await stat(join(root, "closed", "key", "content", "a", "index.js"));
  assert.equal(kept.uid, process.geteuid?.());
});

test("the longest unused folder goes when all together are too large", async () => {
  const store = await storeOf("few", 3 * 1024 * 1024);
  for (const key of ["a", "b"]) await store.keep(key, await installed(key, key.repeat(1024 * 1024)));
  assert.equal(await store.copy("a", join(root, "used"), uid), true);
  await store.keep("c", await installed("c", "c".repeat(1024 * 1024)));
  assert.deepEqual((await readdir(join(root, "few"))).sort(), ["a", "c"]);
});

test("two builds at once keep one folder", async () => {
  const store = await storeOf("twice");
  for (const name of ["x", "y"]) await store.keep("key", await installed(name, name));
  assert.equal(await readFile(join(root, "twice", "key", "content", "a", "index.js"), "utf8"), "x");
});

test("the key names everything that the install sees", () => {
  const seen = [["node 24.0.0", "npm 11.0.0"], ["npm", "ci"], {}, { "package.json": "{}", "package-lock.json": "{}" }];
  const others = [
    [["node 24.0.1", "npm 11.0.0"], ...seen.slice(1)],
    [seen[0], ["npm", "ci", "--omit=dev"], ...seen.slice(2)],
    [...seen.slice(0, 2), { npm_config_registry: "https://mirror.example" }, seen[3]],
    [...seen.slice(0, 3), { "package.json": "{}", "package-lock.json": "{ }" }],
  ];
  const keys = [seen, ...others].map((inputs) => installStoreKey(inputs));
  assert.equal(new Set(keys).size, keys.length);
});
