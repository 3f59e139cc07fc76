import assert from "node:assert/strict";
import { test } from "node:test";
import { explainFailure } from "./explain-failure.ts";
import { releaseFailure } from "./release-failures.ts";

const crash = releaseFailure("boot", "crash_on_boot", "The application crashed while it started (exit code 1).");
const release = releaseFailure("release", "release_failed", "The release command ended with exit code 1: migrate");
const told = (text: string, hasDatabase = true, failure = crash) =>
  explainFailure(failure, { words: text.split("\n"), hasDatabase });

test("a crash is told by the line that names the error, and what to do about it", () => {
  const cases: readonly (readonly [string, RegExp, RegExp])[] = [
    [
      "    throw err;\n    ^\n\nError: Cannot find module 'express/lib/x'\nRequire stack:",
      /Cannot find module/,
      /`express` is not/,
    ],
    [
      "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@a/b' imported from /app/x.js",
      /ERR_MODULE/,
      /`@a\/b` is not/,
    ],
    ["Traceback …\nModuleNotFoundError: No module named 'flask'", /No module/, /`flask` to requirements/],
    ["/bin/sh: 1: ./run.sh: Permission denied", /Permission denied/, /--chmod=\+x \.\/run\.sh/],
    ["/bin/sh: 1: ./run.sh: not found", /run\.sh: not found/, /carriage return/],
    ["/bin/sh: 1: jest: not found", /jest: not found/, /command `jest`/],
    ["chown: changing ownership of '/run/x': Operation not permitted", /chown: changing/, /one unprivileged user/],
    [
      "starting\nmkdir: cannot create directory '/var/x': Read-only file system",
      /mkdir: cannot/,
      /"storage": .*a VOLUME/,
    ],
    ["sqlite3.OperationalError: unable to open database file", /unable to open/, /SQLite.*"storage": "\/data"/],
  ];
  for (const [text, summary, hint] of cases) {
    assert.match(told(text).summary, summary);
    assert.match(told(text).hint, hint);
  }
  assert.deepEqual(told("Error: Cannot find module './own'"), {
    ...crash,
    summary: "The application crashed while it started (exit code 1): Error: Cannot find module './own'",
  });
  assert.deepEqual(told("bye"), crash);
});

test("a crash without output does not send its owner to the output", () => {
  for (const text of ["", "\n \n"]) assert.match(told(text).hint, /no line of this start/);
});

test("a project without a database is told how to get one, when that was missed", () => {
  const words = "The DATABASE_URL environment variable is not set";
  assert.match(told(words, false, release).hint, /berth db create/);
  assert.equal(told(words, true, release).hint, release.hint);
  assert.match(told("Error: connect ECONNREFUSED 127.0.0.1:5432", false).hint, /berth db create/);
});

test("other failures say enough by themselves", () => {
  const failure = releaseFailure("health", "wrong_port", "Nothing listens.");
  assert.equal(told("Error: x", true, failure), failure);
});
