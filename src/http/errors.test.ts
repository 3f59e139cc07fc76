import assert from "node:assert/strict";
import { test } from "node:test";
import { answerTo } from "./errors.ts";

const fault = (code: string, message = "open '/data/secret'") => Object.assign(new Error(message), { code });

test("a disk that is full or read-only and a database that is away are outages, each with an answer of its own", () => {
  const cases = [
    [fault("EROFS"), 503, "unavailable", "The platform cannot write to its disk; its operator has to repair it."],
    [fault("ENOSPC"), 507, "storage_full", undefined],
    [fault("53100", "could not extend file: No space left on device"), 507, "storage_full", undefined],
    [fault("58030", "could not write to file: Read-only file system"), 503, "unavailable", undefined],
    [fault("ECONNREFUSED"), 503, "unavailable", undefined],
  ] as const;
  for (const [error, status, code, sentence] of cases) {
    const { kind, body, headers, ...answer } = answerTo(error);
    assert.deepEqual([answer.status, body.code, kind], [status, code, "outage"], error.code);
    if (sentence !== undefined) assert.equal(body.error, sentence);
    if (status === 503) assert.ok(Number(headers["retry-after"]) > 0);
    assert.ok(!JSON.stringify(body).includes("secret"));
  }
});

test("a transaction that lost against another one twice is a conflict, not an outage", () => {
  for (const state of ["40P01", "40001"]) {
    const { status, body } = answerTo(fault(state, "deadlock detected"));
    assert.deepEqual([status, body.code], [409, "conflict"]);
  }
});

test("any other fault is ours: 500, and nothing of its text leaves", () => {
  const { status, kind, body } = answerTo(new Error("secret"));
  assert.deepEqual([status, kind, body.code], [500, "fault", "internal"]);
  assert.ok(!JSON.stringify(body).includes("secret"));
});
