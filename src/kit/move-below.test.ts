import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { run, systemPath } from "./exec.ts";
import { FilesRefused } from "./folder-tar.ts";
import { movedBy, moving, type Move } from "./move-below.ts";

const dir = mkdtempSync(join(tmpdir(), "berth-move-"));
after(() => rmSync(dir, { recursive: true, force: true }));

/** Returns a folder with the file `a`, and with another one below `new` that shall take its place. */
function stage() {
  const folder = mkdtempSync(join(dir, "stage-"));
  const at = (path: string) => join(folder, path);
  mkdirSync(at("new"));
  writeFileSync(at("a"), "old");
  writeFileSync(at("new/a"), "new");
  const move = async (what: Move, PATH = systemPath) =>
    movedBy(await run(moving(what), { cwd: folder, env: { PATH } }), what);
  const text = (path: string) => readFileSync(at(path), "utf8");
  return { at, move, text };
}

const replacing = { from: "new/a", to: "a", kept: "kept/a" };

/** A PATH whose nth program is `around` of the real one, in the middle of the command that starts them. */
function programs(nth: number, around: (program: string) => string): string {
  const bin = mkdtempSync(join(dir, "bin-"));
  for (const name of ["mkdir", "ln", "mv", "rm"]) {
    const real = `/bin/${name} "$@"`;
    const count = `echo >> ${bin}/count; [ $(wc -l < ${bin}/count) = ${nth} ] || exec ${real}`;
    writeFileSync(join(bin, name), `#!/bin/sh\n${count}\n${around(real)}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  return `${bin}:${systemPath}`;
}

test("a file is at its place whenever a move that replaces it ends, and the next one undoes or repeats that", async () => {
  const ends: string[] = [];
  const kills = [() => "kill -9 $PPID", (real: string) => `${real}; kill -9 $PPID`];
  for (const program of [1, 2, 3, 4].flatMap((nth) => kills.map((kill) => programs(nth, kill)))) {
    const { at, move, text } = stage();
    await assert.rejects(move(replacing, program), FilesRefused);
    const isKept = existsSync(at("kept/a"));
    ends.push(`${text("a")} ${isKept ? text("kept/a") : "-"}`);
    if (existsSync(at("new/a"))) {
      if (isKept) assert.equal(await move({ from: "kept/a", to: "a" }), "moved");
      assert.deepEqual([text("a"), existsSync(at("kept/a"))], ["old", false]);
      assert.equal(await move(replacing), "replaced");
    }
    assert.deepEqual([text("a"), text("kept/a"), existsSync(at("new/a"))], ["new", "old", false]);
  }
  assert.deepEqual(ends, ["old -", "old -", "old -", "old -", "old -", "old old", "old old", "new old"]);
});

test("files, links and folders take each other's place, and what was there is kept as it was", async () => {
  const makes = {
    file: (path: string, text: string) => writeFileSync(path, text, { mode: 0o640 }),
    link: (path: string, text: string) => symlinkSync(`/nowhere/${text}`, path),
    folder: (path: string, text: string) => (mkdirSync(path), writeFileSync(join(path, "in"), text)),
  };
  const said = (path: string) => {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return readFileSync(join(path, "in"), "utf8");
    return existsSync(path) ? readFileSync(path, "utf8") : readlinkSync(path).replace("/nowhere/", "");
  };
  for (const old of Object.values(makes))
    for (const next of Object.values(makes)) {
      const { at, move } = stage();
      mkdirSync(at("new/deep"));
      mkdirSync(at("-a\n"));
      old(at("-a\n/x\ny"), "old");
      next(at("new/deep/x"), "new");
      assert.equal(await move({ from: "new/deep/x", to: "-a\n/x\ny", kept: ".k/-a\n/x\ny" }), "replaced");
      assert.deepEqual([said(at("-a\n/x\ny")), said(at(".k/-a\n/x\ny"))], ["new", "old"]);
      assert.deepEqual(readdirSync(at("new/deep")), []);
    }
});

test("what cannot be kept is not replaced, whatever the folder's owner puts in the way", async () => {
  for (const [name, block] of Object.entries({
    "a link to elsewhere": (at: (path: string) => string) => symlinkSync(dir, at("kept")),
    "a file": (at: (path: string) => string) => writeFileSync(at("kept"), ""),
    "something at the kept name": (at: (path: string) => string) => (
      mkdirSync(at("kept")),
      writeFileSync(at("kept/a"), "other")
    ),
  })) {
    const { at, move, text } = stage();
    block(at);
    await assert.rejects(move(replacing), FilesRefused, name);
    assert.deepEqual([text("a"), text("new/a")], ["old", "new"], name);
  }
  const { at, move, text } = stage();
  const swap = (real: string) => `rm a; mkdir a; ${real}`;
  await assert.rejects(move(replacing, programs(4, swap)), FilesRefused);
  assert.deepEqual([text("kept/a"), text("new/a"), readdirSync(at("a"))], ["old", "new", []]);
});

test("another name of the very file goes away, what was made anew meanwhile stays, a folder comes back", async () => {
  const { at, move, text } = stage();
  linkSync(at("a"), at("new/same"));
  assert.equal(await move({ ...replacing, from: "new/same" }), "moved");
  assert.deepEqual([text("a"), existsSync(at("kept")), existsSync(at("new/same"))], ["old", false, false]);
  const folder = stage();
  mkdirSync(folder.at("b"));
  const anew = (real: string) => `${real}; echo anew > b`;
  assert.equal(await folder.move({ from: "new/a", to: "b", kept: "kept/b" }, programs(4, anew)), "taken");
  assert.deepEqual([folder.text("b"), folder.text("new/a"), readdirSync(folder.at("kept"))], ["anew\n", "new", ["b"]]);
  const failing = stage();
  mkdirSync(failing.at("b/in"), { recursive: true });
  const fail = programs(5, () => "exit 1");
  await assert.rejects(failing.move({ from: "new/a", to: "b", kept: "kept/b" }, fail), FilesRefused);
  assert.deepEqual([readdirSync(failing.at("b")), failing.text("new/a")], [["in"], "new"]);
});
