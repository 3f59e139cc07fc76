import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";

import { run, runOk } from "../../src/kit/exec.ts";

const root = resolve(import.meta.dirname, "../..");
const home = ["", "root", "x"].join("/");

/** Planted files, each with what the check of that name must say of it; null where it must say nothing. */
const planted: readonly { check: string; file: string; text: string; says: RegExp | null }[] = [
  { check: "names", file: "src/kit/badCase.ts", text: "export const badCase = 1;", says: /kebab-case/ },
  {
    check: "names",
    file: "src/kit/log-helper.ts",
    text: "export const logHelper = 1;",
    says: /the name says "helper"/,
  },
  { check: "names", file: "src/kit/users.ts", text: "export interface UserInfo {}", says: /UserInfo says "info"/ },
  { check: "names", file: "src/kit/rows.ts", text: "export type RowData = 1;", says: /RowData says "data"/ },
  { check: "names", file: "src/kit/database.ts", text: "export class Database {}", says: null },
  { check: "names", file: "src/kit/alone.ts", text: "export function other() {}", says: /name the file after it/ },
  {
    check: "names",
    file: "src/kit/find-it.ts",
    text: "export const limit = 1;\nexport function findIt() {}",
    says: /findIt is the main export/,
  },
  {
    check: "names",
    file: "src/kit/find-that.ts",
    text: "export interface Found {}\nexport function findThat() {}",
    says: null,
  },
  { check: "exports", file: "src/kit/dead.ts", text: "export const dead = 1;", says: /^dead /m },
  { check: "exports", file: "src/kit/used.ts", text: "export const used = 1;", says: null },
  { check: "exports", file: "src/kit/lonely.ts", text: "console.log();", says: /^src\/kit\/lonely\.ts *$/m },
  {
    check: "exports",
    file: "src/kit/shapes.ts",
    text: "export interface Shape {}\nexport interface Outer { inner: Shape }\nexport interface Lonely {}",
    says: /^Lonely /m,
  },
  { check: "exports", file: "src/features/dead/rules.ts", text: "export const tried = 1;", says: null },
  {
    check: "exports",
    file: "src/features/dead/rules.test.ts",
    text: 'import { tried } from "./rules.ts";\nconsole.log(tried);',
    says: null,
  },
  {
    check: "exports",
    file: "src/cli/main.ts",
    text: 'import { used } from "../kit/used.ts";\nimport "../kit/dead.ts";\nimport "../kit/shapes.ts";\nconsole.log(used);',
    says: null,
  },
  {
    check: "exports of the product",
    file: "src/features/dead/rules.ts",
    text: "export const tried = 1;",
    says: /^src\/features\/dead\/rules\.ts *$/m,
  },
  { check: "texts", file: "docs/a.md", text: `see ${home}/file`, says: /names a folder of one machine/ },
  { check: "texts", file: "docs/b.md", text: "see /data/file", says: null },
  { check: "texts", file: "src/kit/sh.ts", text: `run({ shell: ${true} });`, says: /starts a shell/ },
  {
    check: "texts",
    file: "src/kit/handlerPlatform.ts",
    text: `console.log(process.${"env"});`,
    says: /reads the environment/,
  },
  { check: "texts", file: "src/daemon/config.ts", text: `console.log(process.${"env"});`, says: null },
  {
    check: "texts",
    file: "package-lock.json",
    text: `{"${"resolved"}": "https://example.org"}`,
    says: /registry addresses/,
  },
  { check: "migrations", file: "sql/0001-first.sql", text: "-- expand\ncreate table a (b text);", says: /was changed/ },
  {
    check: "migrations",
    file: "sql/0003-new.sql",
    text: "-- expand\n-- no rename\ncreate table c (d text not null);\nalter table a add x text not null default 1;",
    says: null,
  },
  {
    check: "migrations",
    file: "sql/0004-drop.sql",
    text: "-- expand\nalter table a drop column b;",
    says: /"drop column"/,
  },
  {
    check: "migrations",
    file: "sql/0006-add.sql",
    text: "-- expand\nalter table a add column e text not null;",
    says: /"add column e text not null"/,
  },
  { check: "migrations", file: "sql/0005-end.sql", text: "-- contract\ndrop table a;", says: /only expand/ },
  {
    check: "migrations",
    file: "sql/SHA256SUMS",
    text: `${"0".repeat(64)}  0001-first.sql\n${"0".repeat(64)}  0002-gone.sql`,
    says: /0002-gone\.sql is missing or renamed/,
  },
];

let copy = "";
const outputs = new Map<string, string>();

before(async () => {
  copy = await mkdtemp(join(tmpdir(), "berth-checks-"));
  await runOk({ file: "git", args: ["init", "-q"] }, { cwd: copy });
  await cp(join(root, "package.json"), join(copy, "package.json"));
  for (const { file, text } of planted) {
    await mkdir(dirname(join(copy, file)), { recursive: true });
    await writeFile(join(copy, file), `${text}\n`);
  }
  for (const check of new Set(planted.map((each) => each.check))) {
    const command = { file: process.execPath, args: [join(root, "tools/check/main.ts"), check] };
    const result = await run(command, { cwd: copy });
    assert.equal(result.exitCode, 1, `${check} is red\n${result.stderr}`);
    outputs.set(check, result.stdout);
  }
});

after(() => rm(copy, { recursive: true, force: true }));

for (const { check, file, says } of planted) {
  test(`${check}: ${file} ${says === null ? "is fine" : `is refused: ${says.source}`}`, () => {
    const lines = (outputs.get(check) ?? "").split("\n").filter((line) => line.includes(file));
    if (says === null) assert.deepEqual(lines, []);
    else assert.match(lines.join("\n"), says);
  });
}

test("an exception that nothing needs any more is reported", () => {
  assert.match(outputs.get("names") ?? "", /"src\/git\/paths\.ts#GitService" is no longer needed: remove it/);
});
