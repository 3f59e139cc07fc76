import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../kit/log.ts";
import type { LogStore } from "../ports/log-store.ts";
import { createBuildLog, type LogPlace } from "./build-log.ts";

function placeOf(appendBuild: LogStore["appendBuild"]): LogPlace {
  return { log: silentLog, ports: { logStore: { appendBuild } as LogStore } };
}

test("lines are kept as a terminal would show them in the end, without its control characters and without secrets", async () => {
  const stored: string[] = [];
  const log = createBuildLog(
    placeOf(async (_id, lines) => void stored.push(...lines)),
    "bld_1",
    (text) => text.replaceAll("hunter2", "•"),
  );
  log.detail("[/] applying...\x1b[2K\x1b[1G[ok] applied");
  log.detail("10 %\r100 %\r");
  log.detail("\x1b[31mhun\x1b[0mter2\x07 \x1b]0;title\x07");
  log.detail("");
  log.step("Next");
  await log.flush();
  assert.deepEqual(stored, ["       [ok] applied", "       100 %", "       •", "", "-----> Next"]);
  assert.deepEqual(log.tail(), stored);
});

test("a line has at most ten thousand bytes: the rest is cut and marked, once secrets are hidden", async () => {
  const stored: string[] = [];
  const log = createBuildLog(
    placeOf(async (_id, lines) => void stored.push(...lines)),
    "bld_1",
    (text) => text.replaceAll("hunter2", "•"),
  );
  log.line(`${"é".repeat(4993)}hunter2${"é".repeat(100)}`);
  await log.flush();
  assert.deepEqual(stored, [`${"é".repeat(4993)}• … [cut]`]);
});

test("lines that the disk had no room for are lost; flushing does not fail, and later lines are stored", async () => {
  const stored: string[] = [];
  let isFull = true;
  const append = async (_id: string, lines: readonly string[]) => {
    if (isFull) throw new Error("ENOSPC");
    stored.push(...lines);
  };
  const log = createBuildLog(placeOf(append), "bld_1", (text) => text);
  log.line("lost");
  await log.flush();
  isFull = false;
  log.line("kept");
  await log.flush();
  assert.deepEqual([stored, log.tail()], [["kept"], ["lost", "kept"]]);
});
