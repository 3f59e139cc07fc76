import assert from "node:assert/strict";
import { test } from "node:test";
import { createBuildLog } from "./build-log.ts";

function record(secrets: string[] = []) {
  const lines: string[] = [];
  return { lines, log: createBuildLog((line) => void lines.push(line), secrets) };
}

test("steps, details and errors have the shape that git's users know", () => {
  const { lines, log } = record();
  log.step("Node.js app detected");
  log.detail("one\ntwo");
  log.detail("ends in spaces  \n\n");
  log.error("no");
  const details = ["       one", "       two", "       ends in spaces", "", ""];
  assert.deepEqual(lines, ["-----> Node.js app detected", ...details, " !     no"]);
});

test("output comes out by line, however it was cut, and without what would paint a terminal", () => {
  const { lines, log } = record();
  const output = log.output();
  const text = Buffer.from("grün\u001b[31m rot\u001b[0m\n10 %\r100 %\r\n\u001b]0;title\u0007last\u0000");
  for (const byte of text) output.push(Buffer.from([byte]));
  output.end();
  assert.deepEqual(lines, ["       grün rot", "       100 %", "       last"]);
});

test("known secrets are hidden, in the tail too", () => {
  const { lines, log } = record(["hunter2-secret"]);
  log.detail("password is hunter2-secret!");
  assert.deepEqual(lines, ["       password is [redacted]!"]);
  assert.deepEqual(log.tail(), lines);
});

test("the tail is the last thirty lines", () => {
  const { log } = record();
  for (let i = 1; i <= 40; i += 1) log.detail(String(i));
  assert.equal(log.tail().length, 30);
  assert.equal(log.tail()[29], "       40");
});

test("a line of more than ten thousand bytes is cut and marked once its secrets are hidden", () => {
  const { lines, log } = record(["hunter2-secret"]);
  log.detail(`${"x".repeat(9980)}hunter2-secret${"y".repeat(100)}`);
  assert.deepEqual(lines, [`       ${"x".repeat(9980)}[re … [cut]`]);
});
