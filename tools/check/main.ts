import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";

import { run } from "../../src/kit/exec.ts";
import { digestContents, openGreenChecks } from "./green-checks.ts";

interface Check {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it reads the files of docs/ and those beside it. */
  readonly withDocuments?: true;
  /** What to do when it is red. */
  readonly advice: string;
}

/** The programs are those of this checkout; what they check is the current folder. */
const root = resolve(import.meta.dirname, "../..");
const folders = ["src", "test", "tools"].filter((folder) => existsSync(folder));

/** What was learnt about unchanged files stays here; removing the folder is always safe. */
const cache = "node_modules/.cache";
// tsc is a Go program that ends before its garbage is worth collecting: a quarter of its processor time.
const withoutCollecting = { GOGC: "off", GOMEMLIMIT: "2GiB" };
const keptTypes = (name: string) => ["--incremental", "--tsBuildInfoFile", `${cache}/${name}`];
const knip = (config: string) => [
  "node_modules/knip/bin/knip.js",
  ...["--config", resolve(root, "tools/check", config), "--no-progress", "--treat-config-hints-as-errors"],
  ...["--cache", "--cache-location", `${cache}/knip-${config}`],
];

const checks: readonly Check[] = [
  {
    name: "types",
    // Several checkers would each infer the same types anew: one needs two thirds of their processor time.
    args: ["node_modules/typescript/bin/tsc", "-p", ".", "--noEmit", "--checkers", "1", ...keptTypes("berth-types")],
    env: withoutCollecting,
    advice: "correct the types",
  },
  {
    name: "types of the dashboard",
    // A browser's names instead of Node's.
    args: [
      ...["node_modules/typescript/bin/tsc", "-p", "src/dashboard", "--noEmit", "--checkers", "1"],
      ...keptTypes("berth-dashboard-types"),
    ],
    env: withoutCollecting,
    advice: "correct the types",
  },
  {
    name: "lint",
    args: ["node_modules/oxlint/bin/oxlint", "--threads=1", "--deny-warnings", "-f", "unix", ...folders],
    // On one processor it has one checker for the rules that ask for types: several would each infer the same types anew.
    env: { ...withoutCollecting, GOMAXPROCS: "1" },
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
    args: [...knip("unused.json")],
    advice: "delete what nothing uses, or drop its export",
  },
  {
    name: "exports of the product",
    args: [...knip("unused-by-product.json"), "--production"],
    advice: "delete what only tests use",
  },
  {
    name: "texts",
    args: ["tools/check/texts.ts"],
    withDocuments: true,
    advice: "say it without the named thing",
  },
  {
    name: "migrations",
    args: ["tools/check/migrations.ts"],
    advice: "a migration that main has never changes; a change is a new file that only expands the schema",
  },
  {
    name: "generated files",
    args: ["tools/gen/main.ts", "--check"],
    withDocuments: true,
    advice: "run npm run gen and commit what it writes",
  },
];

// dependency-cruiser and knip load compiled.
process.env["NODE_COMPILE_CACHE"] ??= resolve(cache, "berth-compiled-code");

const timeoutMs = 14 * 60 * 1000;
const greenChecks = openGreenChecks(resolve(cache, "berth-green-checks.json"));

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
  const [name = "", ...args] = check.args;
  const program = resolve(root, name);
  if (!existsSync(program)) {
    console.log(`not run  ${check.name}: ${name} does not exist`);
    return name.startsWith("tools/gen/");
  }
  // Elsewhere the programs of the checks are not among the files.
  const digest = () => (process.cwd() === root ? digestContents(root, check.withDocuments === true) : null);
  const contents = await digest();
  if (greenChecks.has(check.name, contents)) {
    console.log(`ok       ${check.name} (no file has changed since it was green)`);
    return true;
  }
  const startedAt = performance.now();
  const env = { ...(process.env as Record<string, string>), ...check.env };
  const result = await run(
    { file: process.execPath, args: [program, ...args] },
    { cwd: process.cwd(), env, timeoutMs },
  );
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (result.exitCode === 0) {
    console.log(`ok       ${check.name} (${seconds} s)`);
    // A file that was changed meanwhile may have been read before or after.
    if ((await digest()) === contents) greenChecks.add(check.name, contents);
    return true;
  }
  const output = `${result.stdout}${result.stderr}`.trim();
  console.log(`RED      ${check.name} (${seconds} s)\n${output}\n         -> ${check.advice}\n`);
  return false;
}

if (!(await checkAll(process.argv.slice(2)))) process.exitCode = 1;
