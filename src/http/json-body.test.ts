import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused } from "../features/context.ts";
import { readJsonBody } from "./json-body.ts";

const read = (text: string, type = "application/json") => readJsonBody(type, Buffer.from(text));
const refusal = (text: string, type?: string) => {
  try {
    read(text, type);
    return "taken";
  } catch (error) {
    return error instanceof Refused ? error.code : String(error);
  }
};

test("JSON is read, whatever its parameters and suffix", () => {
  for (const type of [
    "application/json",
    "application/json; charset=utf-8",
    "Application/JSON",
    "application/merge-patch+json",
  ]) {
    assert.deepEqual(read('{"a":[1,"\\u00e4\\ud83d\\ude00"]}', type), { a: [1, "ä😀"] });
  }
  assert.equal(read("", "text/plain"), undefined);
});

test("what is not called JSON, is not JSON, or is too deep is refused", () => {
  assert.equal(refusal("{}", "text/plain"), "unsupported_media_type");
  assert.equal(refusal("{}", ""), "unsupported_media_type");
  assert.equal(refusal("{}", "application/jsonp"), "unsupported_media_type");
  for (const text of ["{", "{a:1}", "'a'", "{} {}", "\ufeff{}x"]) assert.equal(refusal(text), "invalid_request");
  assert.equal(refusal("[".repeat(32) + "]".repeat(32)), "taken");
  assert.equal(refusal("[".repeat(33) + "]".repeat(33)), "invalid_request");
  assert.equal(refusal(`"\\"${"[".repeat(99)}"`), "taken");
});

// With a regular expression instead of the loop, this body took half a minute.
test("a string that never ends costs one pass", () => {
  assert.equal(refusal(`"${'\\"'.repeat(120_000)}`), "invalid_request");
});

test("half a surrogate pair is refused, a whole one and an escaped backslash are not", () => {
  assert.equal(refusal('{"a":"\\ud800"}'), "invalid_request");
  assert.equal(refusal('{"\\uDFFF":1}'), "invalid_request");
  assert.equal(refusal('{"a":"\\ud83d\\ude00"}'), "taken");
  assert.equal(refusal('{"a":"\\\\ud800"}'), "taken");
});
