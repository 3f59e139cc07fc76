import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOfProgram } from "./work-failure.ts";

test("a server that does not answer is noticed, and what a project wrote is read in no time worth mentioning", () => {
  const away = 'pg_dump: error: connection to server on socket "/run/.s.PGSQL.5432" failed: No such file or directory';
  assert.equal(failureOfProgram("pg_dump", away).reason, "away");
  const started = performance.now();
  assert.equal(failureOfProgram("pg_dump", "connection to server ".repeat(6000)).reason, "refused");
  assert.ok(performance.now() - started < 500, "reading what a project wrote took too long");
});
