import { cpus } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { seededRandom } from "../../test/support/seeded-random.ts";
import { changedFiles, reaches } from "./changed-files.ts";
import { drawFiles, type Drawn } from "./draw-files.ts";
import { capacity, planJobs, type Job } from "./plan-jobs.ts";
import { printDraw, printResult, printSummary } from "./print.ts";
import { runJob, type JobResult } from "./run-job.ts";
import { runJobs } from "./run-jobs.ts";
import { slowness } from "./slowness.ts";
import { findTestFiles } from "./test-files.ts";

const checks: Job = {
  ...{ name: "checks", args: ["tools/check/main.ts"], isTest: false, weight: 2 },
  limits: { testSeconds: 600, fileSeconds: 600 },
};

/** Runs the test files whose path contains one of the words. Without words, runs the checks and a draw of all files. */
async function runAll(only: readonly string[], shares: number): Promise<boolean> {
  const { files, ...draw } = await chooseFiles(only, shares);
  printDraw(draw);
  const tests = planJobs(files);
  const jobs = only.length === 0 ? [checks, ...tests] : tests;
  const before = busySeconds();
  const results: JobResult[] = [];
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => stop.abort());
  const isLive = jobs.length === 1;
  const options = {
    slowness,
    signal: stop.signal,
    ...(isLive ? { onOutput: (text: string) => process.stdout.write(text) } : {}),
  };
  await runJobs(jobs, capacity, async (job) => {
    if (stop.signal.aborted) return;
    const result = await runJob(job, options);
    results.push(result);
    printResult(result, isLive);
  });
  printSummary(results, busySeconds() - before);
  const passed = results.some((result) => result.passed > 0);
  return passed && !stop.signal.aborted && results.every(({ isGreen }) => isGreen);
}

/** Returns the files to run. A file that is named always runs. */
async function chooseFiles(only: readonly string[], shares: number): Promise<Drawn> {
  const found = findTestFiles(only);
  if (only.length > 0) return { files: found, reached: [], others: [] };
  const changed = await changedFiles(process.env["BERTH_TEST_BASE"]);
  if (changed === null)
    console.log("No commit to compare with, so what was changed draws no files; BERTH_TEST_BASE names one.");
  const paths = new Set(changed);
  return drawFiles(found, seededRandom(), shares, (file) => reaches(paths, file));
}

/** Returns the CPU seconds that the machine has spent since its start, on all processes. */
function busySeconds(): number {
  return cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0) / 1000;
}

// Test processes and the programs that they start reuse compiled modules. Removing the folder is always safe.
process.env["NODE_COMPILE_CACHE"] ??= resolve("node_modules/.cache/berth-compiled-code");
const options = {
  all: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
  "every-file": { type: "boolean", default: false },
  shares: { type: "string", default: "1" },
} as const;
const usage = `usage: npm test -- [--shares N | --every-file | --all] [WORD ...]

Runs a draw of the test files and the checks, or the files whose path contains one of the words.
  --shares N    the drawn files of N usual runs
  --every-file  every file, each with the cases of a usual run
  --all         every file with every case; needs an hour`;

function parseArguments() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    console.error(`${(error as Error).message}\n${usage}`);
    process.exit(2);
  }
}

const { values, positionals } = parseArguments();
if (values.help) {
  console.log(usage);
  process.exit();
}
// Slow files draw a few of their cases for a usual run (test/support/draw-cases.ts).
if (values.all) process.env["BERTH_TEST_ALL"] = "1";
const shares = values.all || values["every-file"] ? Infinity : Number(values.shares);
if (!(shares >= 1)) throw new Error(`--shares takes a number of shares from 1 on, not ${values.shares}`);
if (!(await runAll(positionals, shares))) process.exitCode = 1;
