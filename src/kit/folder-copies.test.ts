import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runOk } from "./exec.ts";
import { addCopy, removeCopies } from "./folder-copies.ts";

const dir = mkdtempSync(join(tmpdir(), "berth-copies-"));
after(() => rmSync(dir, { recursive: true, force: true }));
const folder = join(dir, "prj_1");

test("a folder that does not exist has no copy", async () => {
  assert.equal(await addCopy(folder, { id: "a", keep: [] }), null);
  assert.deepEqual(readdirSync(dir), []);
});

test("a copy holds the files as they were, links as links, and only the kept ones stay", async () => {
  mkdirSync(join(folder, "sub"), { recursive: true });
  writeFileSync(join(folder, "sub", "photo"), "first");
  symlinkSync("/etc/passwd", join(folder, "link"));
  for (const id of ["a", "b", "c"]) assert.ok(((await addCopy(folder, { id, keep: ["a"] })) ?? 0) > 0);
  writeFileSync(join(folder, "sub", "photo"), "later");
  assert.deepEqual(readdirSync(join(dir, ".copies", "prj_1")).toSorted(), ["a.tar", "c.tar"]);
  const back = join(dir, "back");
  mkdirSync(back);
  await runOk({ file: "tar", args: ["-xf", join(dir, ".copies", "prj_1", "a.tar"), "-C", back] });
  assert.equal(readFileSync(join(back, "sub", "photo"), "utf8"), "first");
  assert.equal(readlinkSync(join(back, "link")), "/etc/passwd");
});

test("all copies of a folder are removed with it", () => {
  removeCopies(folder);
  assert.equal(existsSync(join(dir, ".copies", "prj_1")), false);
});
