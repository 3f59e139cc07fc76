import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runOk } from "./exec.ts";
import { listBelow, readBelow, statBelow } from "./look-into-folder.ts";

const outside = mkdtempSync(join(tmpdir(), "berth-look-"));
const folder = join(outside, "storage");
mkdirSync(join(folder, "a/-b"), { recursive: true });
writeFileSync(join(folder, "a/-b/-file"), "0123456789");
writeFileSync(join(folder, "a/line\nbreak"), "");
writeFileSync(join(outside, "secret"), "secret");
symlinkSync("..", join(folder, "up"));
symlinkSync("../secret", join(folder, "link"));
await runOk({ file: "/bin/sh", args: ["-c", "mkfifo pipe"] }, { cwd: folder });
after(() => rmSync(outside, { recursive: true }));

const all = { folder, offset: 0, count: 100 };
const names = async (path: string, more = {}) => (await listBelow({ ...all, path, ...more }))?.map(({ name }) => name);

test("a folder is listed by name, in parts, with what each entry is", async () => {
  const found = (await listBelow({ ...all, path: "" })) ?? [];
  assert.deepEqual(
    found.map(({ name, kind }) => `${name} ${kind}`),
    ["a folder", "link link", "pipe other", "up link"],
  );
  assert.ok(Math.abs(Date.parse(found[0]?.modified_at ?? "") - Date.now()) < 600_000);
  assert.deepEqual(await names("", { offset: 1, count: 2 }), ["link", "pipe"]);
  assert.deepEqual(await names("a"), ["-b", "line\nbreak"]);
  assert.equal((await listBelow({ ...all, path: "a/-b" }))?.[0]?.size_bytes, 10);
});

test("what a path is, is told without following links", async () => {
  const kindOf = async (path: string) => (await statBelow({ folder, path }))?.kind;
  assert.deepEqual(await Promise.all(["a", "a/-b/-file", "link", "pipe", "a/line\nbreak"].map(kindOf)), [
    ...["folder", "file", "link", "other", "file"],
  ]);
  for (const path of ["none", "up/storage", "a/none/none", "../secret"])
    assert.equal(await kindOf(path), undefined, path);
});

test("a file is read from an offset", async () => {
  const text = async (more: object) => (await readBelow({ ...all, path: "a/-b/-file", ...more }))?.toString();
  assert.equal(await text({}), "0123456789");
  assert.equal(await text({ offset: 3, count: 4 }), "3456");
  assert.equal(await text({ offset: 10 }), "");
});

test("no link is followed, on the way or at the end, and nothing but a file is read", async () => {
  for (const path of ["up", "up/storage", "..", "a/../..", "none", "a/-b/-file"])
    assert.equal(await listBelow({ ...all, path }), undefined, path);
  for (const path of ["link", "up/secret", "../secret", "a/../../secret", "pipe", "a", "none", "none/none"])
    assert.equal(await readBelow({ ...all, path }), undefined, path);
});
