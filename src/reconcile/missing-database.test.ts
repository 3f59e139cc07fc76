import assert from "node:assert/strict";
import { test } from "node:test";
import { explainMissingDatabase } from "./missing-database.ts";

const words = ["> prisma generate", "Error: Environment variable not found: DATABASE_URL."];
const failureOf = (code: string) => ({
  stage: "build" as const,
  code,
  summary: "It ended with exit code 1.",
  hint: "The output above says why.",
  log_tail: words,
});

test("a build, a start or a health check that names DATABASE_URL in a project without a database leads to one", () => {
  for (const code of [
    "install_failed",
    "build_script_failed",
    "crash_on_boot",
    "exited_on_boot",
    "health_check_failed",
  ])
    assert.match(
      explainMissingDatabase(failureOf(code), { words, hasDatabase: false }).hint,
      /`berth db create`/,
      code,
    );
});

test("the hint stays where there is a database, another cause, or no word of one", () => {
  for (const [code, given] of [
    ["build_script_failed", { words, hasDatabase: true }],
    ["lock_out_of_sync", { words, hasDatabase: false }],
    ["build_script_failed", { words: ["tsc: 3 errors"], hasDatabase: false }],
  ] as const) {
    const failure = failureOf(code);
    assert.equal(explainMissingDatabase(failure, given), failure);
  }
});
