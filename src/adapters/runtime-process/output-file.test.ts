import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, it } from "node:test";
import { testFolder } from "../../../test/support/test-folder.ts";
import { OutputFile } from "./output-file.ts";

describe("the output of an application", () => {
  const root = testFolder("output");
  let folder: string;
  let count = 0;
  const write = (text: string) => appendFileSync(join(folder, "output"), text);
  const storedBytes = () => statSync(join(folder, "output")).blocks * 512;
  beforeEach(() => {
    folder = mkdtempSync(join(root, `${(count += 1)}-`));
    write("");
  });

  it("waits for the line feed while the application lives, and not when it has ended", () => {
    write("one\r\ntw");
    const file = new OutputFile(folder);
    const first = file.read(null, false);
    assert.deepEqual(first.lines, ["one"]);
    assert.deepEqual(file.read(first.cursor, false).lines, []);
    assert.deepEqual(file.read(first.cursor, true).lines, ["tw"]);
    write("o\n\n");
    assert.deepEqual(file.read(first.cursor, false).lines, ["two", ""]);
  });

  it("gives the beginning of a line that is far too long, and skips its rest over several reads", () => {
    write("é".repeat(400_000));
    const file = new OutputFile(folder);
    const read = readAll(file);
    assert.equal(read.lines.length, 1);
    assert.match(read.lines[0] as string, /^é{65536}$/);
    write("\nnext\n");
    assert.deepEqual(readAll(file, read.cursor).lines, ["next"]);
  });

  it("takes no time worth mentioning for long lines, whatever characters they have", () => {
    write(`${"\uFFFD".repeat(40_000)}${"x".repeat(20_000)}\n`.repeat(40));
    const begunMs = performance.now();
    assert.equal(readAll(new OutputFile(folder)).lines.length, 40);
    assert.ok(performance.now() - begunMs < 15_000);
  });

  it("frees what was discarded and goes on at the same cursor", async () => {
    write(`${"x".repeat(999)}\n`.repeat(3000));
    const file = new OutputFile(folder);
    const { cursor } = readAll(file);
    await file.discard(cursor);
    assert.ok(storedBytes() < 100_000, String(storedBytes()));
    write("more\n");
    assert.deepEqual(file.read(cursor, false), { lines: ["more"], cursor: String(3_000_005), dropped_bytes: 0 });
    assert.deepEqual(
      new OutputFile(folder).read(null, false).lines,
      ["more"],
      "a reader without a cursor begins where something is left",
    );
  });

  it("keeps nothing of what was discarded, however little it was", async () => {
    write("told a secret\nhalf a li");
    const file = new OutputFile(folder);
    const { cursor } = readAll(file);
    await file.discard(cursor);
    assert.doesNotMatch(readFileSync(join(folder, "output"), "utf8"), /secret/);
    write("ne\n");
    assert.deepEqual(file.read(cursor, false).lines, ["half a line"]);
  });

  it("drops the oldest output over the cap and counts what a reader lost", async () => {
    write(`${"x".repeat(999)}\n`.repeat(4000));
    const file = new OutputFile(folder);
    await file.cap(2_000_000);
    assert.ok(storedBytes() < 1_200_000, String(storedBytes()));
    const read = file.read("0", false);
    assert.equal(read.dropped_bytes, 3_000_000);
    assert.deepEqual(read.lines[0], "x".repeat(999));
  });

  it("follows an application that truncates its own output", () => {
    write("before\n");
    const file = new OutputFile(folder);
    const { cursor } = file.read(null, false);
    truncateSync(join(folder, "output"), 0);
    write("now\n");
    assert.deepEqual(file.read(cursor, false).lines, ["now"]);
  });

  it("is begun anew when an application stretches it beyond measure, whoever comes by first", async () => {
    const stretched = 2 * 2 ** 40;
    write("before\n");
    const file = new OutputFile(folder);
    const { cursor } = file.read(null, false);
    truncateSync(join(folder, "output"), stretched);
    assert.deepEqual(file.read(cursor, false), { lines: [], cursor, dropped_bytes: 0 });
    write("now\n");
    const now = file.read(cursor, false);
    assert.deepEqual(now.lines, ["now"]);
    truncateSync(join(folder, "output"), stretched);
    await file.cap(2_000_000);
    assert.equal(statSync(join(folder, "output")).size, 0);
    assert.deepEqual(file.read(now.cursor, false).lines, []);
    write("later\n");
    assert.deepEqual(file.read(now.cursor, false).lines, ["later"]);
  });

  it("refuses a cursor that is not its own", () => {
    assert.throws(() => new OutputFile(folder).read("../x", false));
  });
});

function readAll(file: OutputFile, from: string | null = null) {
  const lines: string[] = [];
  let cursor = from;
  for (;;) {
    const chunk = file.read(cursor, false);
    lines.push(...chunk.lines);
    if (chunk.cursor === cursor) return { lines, cursor };
    cursor = chunk.cursor;
  }
}
