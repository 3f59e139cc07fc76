import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";

import { run } from "../../src/kit/exec.ts";

interface Check {
  readonly name: string;
  readonly args: readonly string[];
  /** What to do when it is red. */
  readonly advice: string;
}

const folders = ["src", "test", "tools"].filter((folder) => existsSync(folder));

const checks: readonly Check[] = [
  {
    name: "types",
    args: ["node_modules/typescript/bin/tsc", "-p", ".", "--noEmit", "--pretty", "false"],
    advice: "correct the types",
  },
  {
    name: "lint",
    args: ["node_modules/oxlint/bin/oxlint", "--deny-warnings", "-f", "unix", ...folders],
    advice: "correct the code; a rule that is wrong is changed in .oxlintrc.json, with the reason in the commit",
  },
  {
    name: "format",
    args: ["node_modules/oxfmt/bin/oxfmt", "--list-different", ...folders],
    advice: "run npm run format",
  },
  {
    name: "imports",
    args: ["tools/check/imports.ts"],
    advice: "turn the arrow round, or move the shared part down; the rules are in tools/check/import-rules.ts",
  },
  {
    name: "names",
    args: ["tools/check/names.ts"],
    advice: "rename; a name that must stay goes into tools/check/exceptions.ts with its reason",
  },
  {
    name: "exports",
    args: ["tools/check/exports.ts"],
    advice: "delete what nothing uses",
  },
  {
    name: "texts",
    args: ["tools/check/texts.ts"],
    advice: "say it without the named thing",
  },
  {
    name: "generated files",
    args: ["tools/gen/main.ts", "--check"],
    advice: "run npm run gen and commit what it writes",
  },
];

const timeoutMs = 5 * 60 * 1000;

/** Runs all checks, or those named in `only`, and prints one line for each; the output of red ones follows their line. */
async function checkAll(only: readonly string[]): Promise<boolean> {
  const unknown = only.filter((name) => checks.every((check) => check.name !== name));
  if (unknown.length > 0) throw new Error(`no check is called ${unknown.join(", ")}`);
  const waiting = checks.filter((check) => only.length === 0 || only.includes(check.name));
  let green = true;
  const work = async () => {
    for (let check = waiting.shift(); check; check = waiting.shift()) green = (await isGreen(check)) && green;
  };
  await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, work));
  return green;
}

async function isGreen(check: Check): Promise<boolean> {
  const program = check.args[0] ?? "";
  if (!existsSync(program)) {
    console.log(`not run  ${check.name}: ${program} does not exist`);
    return program.startsWith("tools/gen/");
  }
  const startedAt = performance.now();
  const env = process.env as Record<string, string>;
  const result = await run({ file: process.execPath, args: check.args }, { cwd: process.cwd(), env, timeoutMs });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (result.exitCode === 0) {
    console.log(`ok       ${check.name} (${seconds} s)`);
    return true;
  }
  const output = `${result.stdout}${result.stderr}`.trim();
  console.log(`RED      ${check.name} (${seconds} s)\n${output}\n         -> ${check.advice}\n`);
  return false;
}

if (!(await checkAll(process.argv.slice(2)))) process.exitCode = 1;
