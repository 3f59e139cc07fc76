import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { before, test } from "node:test";
import { testFolder } from "../../../../test/support/test-folder.ts";
import { openTrash } from "../steps/trash.ts";
import { openPackageStore, type LockedSource, type PackageStore } from "./package-store.ts";

const root = testFolder("packages");
let store: PackageStore;

before(async () => {
  store = await openPackageStore(join(root, "store"), await openTrash(join(root, "trash")));
});

/** A package in the format of npm's cache. */
function packed(text: string) {
  const hex = createHash("sha512").update(text).digest("hex");
  const integrity = `sha512-${Buffer.from(hex, "hex").toString("base64")}`;
  return { text, integrity, place: join("sha512", hex.slice(0, 2), hex.slice(2, 4), hex.slice(4)) };
}

const good = packed("good");
const bad = packed("what the digest promises");

/** A project whose lock file names both packages. */
async function project(name: string, files: Record<string, string> = {}): Promise<LockedSource> {
  const workspace = {
    app: join(root, name, "app"),
    cache: join(root, name, "cache"),
    hostUid: process.getuid?.() ?? 0,
  };
  const packages = {
    "node_modules/good": { integrity: good.integrity },
    "node_modules/bad": { integrity: bad.integrity },
  };
  const all = { "app/package-lock.json": JSON.stringify({ packages }), "cache/npm/x": "", ...files };
  for (const [path, text] of Object.entries(all)) {
    await mkdir(dirname(join(root, name, path)), { recursive: true });
    await writeFile(join(root, name, path), text);
  }
  return { workspace, lockFile: "package-lock.json" };
}

/** Runs the steps that follow a build. */
const collect = async (source: LockedSource) => (await store.provide(source))();

const contents = "cache/npm/_cacache/content-v2";

test("what one project's npm has fetched others find in their cache, if it has the digest, and cannot write", async () => {
  await collect(
    await project("first", { [join(contents, good.place)]: good.text, [join(contents, bad.place)]: "something else" }),
  );
  const second = await project("second");
  await store.provide(second);
  const found = join(root, "second", contents, good.place);
  assert.equal(await readFile(found, "utf8"), good.text);
  assert.equal((await stat(found)).mode & 0o777, 0o444);
  await assert.rejects(stat(join(root, "second", contents, bad.place)));
});

test("a project with settings of its own for npm shares nothing", async () => {
  const text = packed("private");
  const lock = JSON.stringify({ packages: { "node_modules/private": { integrity: text.integrity } } });
  const files = { "app/.npmrc": "", "app/package-lock.json": lock, [join(contents, text.place)]: text.text };
  await collect(await project("private", files));
  await assert.rejects(stat(join(root, "store", text.place)));
});

test("a project cannot make the platform write outside of its cache", async () => {
  const hostile = await project("hostile");
  const outside = join(root, "outside");
  await mkdir(outside);
  await symlink(outside, join(hostile.workspace.cache, "npm/_cacache"));
  await store.provide(hostile);
  assert.deepEqual(await readdir(outside), []);
});
