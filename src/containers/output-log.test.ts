import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { OutputLog } from "./output-log.ts";

describe("the engine's file of a container's output", () => {
  let root: string;
  let file: string;
  let log: OutputLog;
  const write = (...texts: readonly string[]) =>
    appendFileSync(
      file,
      texts.map((text) => `${JSON.stringify({ log: text, stream: "stdout", time: "t" })}\n`).join(""),
    );
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "berth-output-"));
    mkdirSync(join(root, "containers", "c1"), { recursive: true });
    file = join(root, "containers", "c1", "c1-json.log");
    log = new OutputLog(root, "c1");
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it("gives whole lines from a cursor on, and a last one without a line feed once the container has ended", async () => {
    assert.deepEqual(await log.read(null, false), { lines: [], cursor: ":0", dropped_bytes: 0 });
    write("one\n", "two\r\n", "hal");
    const first = await log.read(":0", false);
    assert.deepEqual(first.lines, ["one", "two"]);
    assert.deepEqual((await log.read(first.cursor, false)).lines, []);
    write("f\n", "last");
    const second = await log.read(first.cursor, false);
    assert.deepEqual(second.lines, ["half"]);
    const third = await log.read(second.cursor, true);
    assert.deepEqual(third.lines, ["last"]);
    assert.deepEqual((await log.read(third.cursor, true)).lines, []);
  });

  it("changes its mark whenever something was written", () => {
    const empty = log.mark();
    write("one\n");
    assert.notEqual(log.mark(), empty);
  });

  it("goes on in the next file after a rotation, also with a line that both have a part of", async () => {
    write("one\n", "ha");
    const first = await log.read(null, false);
    renameSync(file, `${file}.1`);
    write("lf\n", "three\n");
    assert.deepEqual((await log.read(first.cursor, false)).lines, ["half", "three"]);
  });

  it("is read whole while the engine rotates it", async () => {
    write("one\n");
    renameSync(file, `${file}.1`);
    write("two\n");
    const first = log.read(null, false);
    renameSync(file, `${file}.1`);
    const { lines, cursor } = await first;
    assert.equal(lines.at(-1), "two");
    write("three\n");
    assert.deepEqual((await log.read(cursor, false)).lines, ["three"]);
  });

  it("counts what a rotation threw away, and begins with the oldest that is left", async () => {
    write("one\n");
    const first = await log.read(null, false);
    renameSync(file, `${file}.1`);
    write("lost\n");
    renameSync(file, `${file}.1`);
    write("two\n");
    const second = await log.read(first.cursor, false);
    assert.deepEqual(second.lines, ["lost", "two"]);
    assert.ok(second.dropped_bytes > 0);
  });

  it("gives the beginning of a line that is far too long, once, and then what follows it", async () => {
    for (let part = 0; part < 12; part += 1) write("x".repeat(16 * 1024));
    const first = await log.read(null, false);
    assert.deepEqual(
      first.lines.map((line) => line.length),
      [128 * 1024],
    );
    write("the rest\n", "next\n");
    assert.deepEqual((await log.read(first.cursor, false)).lines, ["next"]);
  });

  it("takes no time worth mentioning for long lines, whatever characters they have", async () => {
    for (let line = 0; line < 40; line += 1) write(`${"\uFFFD".repeat(40_000)}${"x".repeat(20_000)}\n`);
    const begunMs = performance.now();
    let cursor: string | null = null;
    for (let lines = 0; lines < 40;) {
      const read: Awaited<ReturnType<typeof log.read>> = await log.read(cursor, false);
      cursor = read.cursor;
      lines += read.lines.length;
    }
    assert.ok(performance.now() - begunMs < 15_000);
  });
});
