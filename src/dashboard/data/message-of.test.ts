import assert from "node:assert/strict";
import { test } from "node:test";
import { messageOf } from "./message-of.ts";

test("a JSON line is its message, and its other fields as pairs", () => {
  const line = `{"level":30,"time":1,"pid":7,"hostname":"h","msg":"done","req":{"url":"/a  b"},"ms":5,"user":null,"v":1}`;
  assert.deepEqual(messageOf(line), { text: "done", rest: "req.url=/a b ms=5" });
  assert.deepEqual(messageOf(`{"severity":"ERROR","message":"two\\nlines"}`), { text: "two\nlines", rest: "" });
});

test("other lines, and objects without a message, are shown as they are", () => {
  for (const line of ["plain", `{"level":"info"}`, `{"msg":""}`, `["msg"]`]) assert.equal(messageOf(line), undefined);
});

test("a long rest is cut", () => {
  const { rest = "" } = messageOf(JSON.stringify({ msg: "x", stack: "y".repeat(9000) })) ?? {};
  assert.equal(rest.length, 301);
});
