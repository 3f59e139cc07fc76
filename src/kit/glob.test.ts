import assert from "node:assert/strict";
import { test } from "node:test";
import { createGlob, type GlobDialect } from "./glob.ts";

const matches = (pattern: string, path: string, dialect: GlobDialect = "braces") =>
  createGlob(pattern, dialect).matches(path, { steps: 0 });

test("a star stays within a name, two stars cross folders, and braces hold alternatives", () => {
  for (const [pattern, path] of [
    ["*.md", "README.md"],
    ["src/**", "src/a/.env"],
    ["**/*.sql", "db/1.sql"],
    ["**/*.sql", "1.sql"],
    ["a/**/b", "a/b"],
    ["a/**/b", "a/x/y/b"],
    ["{apps,libs}/{web,{api,cron}}/**", "libs/cron/x"],
    ["file-?.[a-c]x", "file-1.bx"],
    ["file.[!a-c]", "file.d"],
    ["\\*", "*"],
    ["{a", "{a"],
    ["a}", "a}"],
  ] as const)
    assert.ok(matches(pattern, path), `${pattern} ${path}`);
  for (const [pattern, path] of [
    ["*.md", "docs/README.md"],
    ["a/**/b", "ab"],
    ["?", "/"],
    ["[!a]", "/"],
    ["{apps,libs}/x", "app/x"],
    ["\\*", "a"],
    ["a", "ab"],
  ] as const)
    assert.ok(!matches(pattern, path), `${pattern} ${path}`);
});

test("what a dialect does not know stands for itself", () => {
  assert.ok(matches("{a,b}", "{a,b}", "plain") && matches("[a]?", "[a]?", "plain"));
  assert.ok(matches("crates/*", "crates/one", "plain") && !matches("crates/*", "crates/one/two", "plain"));
});

test("no pattern takes more steps than its length and the path's, multiplied", () => {
  for (const pattern of [`${"*a".repeat(200)}b`, `${"**/".repeat(100)}b`, "{a,aa}".repeat(60), "{*a,**}".repeat(60)]) {
    const work = { steps: 0 };
    const path = "a/a".repeat(100);
    assert.equal(createGlob(pattern, "braces").matches(path, work), pattern.endsWith("**}"), pattern);
    assert.ok(work.steps <= (pattern.length + 1) * (path.length + 1), `${pattern}: ${work.steps}`);
  }
});

test("the steps of alternatives count, also of those that are empty", () => {
  const work = { steps: 0 };
  createGlob(`*{${",".repeat(200)}}x`, "braces").matches("a".repeat(1000), work);
  assert.ok(work.steps >= 200 * 1000, String(work.steps));
});
