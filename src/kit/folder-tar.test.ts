import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { runOk } from "./exec.ts";
import { FilesRefused, readFolder, restoredFolder, writeFolder } from "./folder-tar.ts";

const dir = mkdtempSync(join(tmpdir(), "berth-tar-"));
chmodSync(dir, 0o755);
after(() => rmSync(dir, { recursive: true, force: true }));
const never = new AbortController().signal;
const isRoot = process.geteuid?.() === 0;
const owner = isRoot ? 4242 : process.geteuid?.();
let count = 0;

function folder(fill: (path: string) => void): string {
  const path = join(dir, `f${(count += 1)}`);
  mkdirSync(path);
  fill(path);
  if (isRoot) chownSync(path, 4242, 4242);
  return path;
}

test("a folder comes back with names of any kind, links, modes and empty folders", async () => {
  const path = folder((at) => {
    mkdirSync(join(at, "empty"));
    writeFileSync(join(at, "line\nbreak -rf .."), "odd");
    writeFileSync(join(at, "x".repeat(250)), "long");
    writeFileSync(join(at, "script"), "#!/bin/sh", { mode: 0o755 });
    symlinkSync("/etc/shadow", join(at, "link"));
  });
  if (isRoot) await runOk({ file: "chown", args: ["-Rh", "4242:4242", path] });
  const archive = readFolder(path, never);
  assert.ok(archive);
  await writeFolder(path, "back", archive, never);
  await runOk({
    file: "diff",
    args: ["-r", "--no-dereference", `--exclude=${restoredFolder}`, path, join(path, restoredFolder, "back")],
  });
  const modes = await runOk({ file: "stat", args: ["-c", "%a %u", join(path, restoredFolder, "back", "script")] });
  assert.equal(modes.stdout.trim(), `755 ${owner}`);
  const [first, second] = await Promise.all([1, 2].map(async () => buffer(readFolder(path, never) as Readable)));
  assert.ok(first?.equals(second as Buffer), "unchanged files make the same stream, and what was restored is left out");
});

test("an archive is read to the end of its stream, also when that comes after its last byte", async () => {
  const path = folder((at) => writeFileSync(join(at, "file"), "text"));
  const bytes = await buffer(readFolder(path, never) as Readable);
  async function* late() {
    yield bytes;
    await setTimeout(300);
  }
  const archive = Readable.from(late());
  await writeFolder(path, "late", archive, never);
  assert.ok(archive.readableEnded);
  assert.equal(readFileSync(join(path, restoredFolder, "late", "file"), "utf8"), "text");
});

test("holes take no room in the stream", async () => {
  const path = folder((at) => writeFileSync(join(at, "sparse"), ""));
  await runOk({ file: "truncate", args: ["--size=1G", join(path, "sparse")] });
  if (isRoot) chownSync(join(path, "sparse"), 4242, 4242);
  assert.ok((await buffer(readFolder(path, never) as Readable)).length < 100_000);
});

test("no folder, an unreadable file, a full or foreign folder and an end of waiting are told apart", async () => {
  assert.equal(readFolder(join(dir, "none"), never), null);
  await assert.rejects(writeFolder(join(dir, "none"), "a", Readable.from([]), never), FilesRefused);
  assert.equal(existsSync(join(dir, "none")), false);
  const path = folder((at) => writeFileSync(join(at, "closed"), "", { mode: 0 }));
  if (isRoot) await assert.rejects(buffer(readFolder(path, never) as Readable), FilesRefused);
  rmSync(join(path, "closed"), { force: true });
  const broken = Readable.from(
    (async function* () {
      yield Buffer.from("not tar");
      throw new Error("the storage is away");
    })(),
  );
  await assert.rejects(writeFolder(path, "broken", broken, never), /the storage is away/);
  await assert.rejects(writeFolder(path, "odd", Readable.from([Buffer.alloc(2048, 7)]), never), FilesRefused);
  const gone = AbortSignal.abort(new Error("over"));
  await assert.rejects(buffer(readFolder(path, gone) as Readable), /over/);
});
