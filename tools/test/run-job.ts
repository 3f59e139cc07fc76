import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { run } from "../../src/kit/exec.ts";
import { processesNaming, type ListedProcess } from "../../test/e2e/processes.ts";
import type { Report } from "./event-reporter.ts";
import { explainOutput } from "./explain-failure.ts";
import type { Job, JobLimits } from "./plan-jobs.ts";

export interface JobResult {
  readonly job: Job;
  readonly isGreen: boolean;
  readonly passed: number;
  readonly failed: readonly Failure[];
  readonly skipped: readonly string[];
  readonly seconds: number;
  readonly processorSeconds: number;
  readonly output: string;
}

export interface Failure {
  /** The test's name; for a process that failed as a whole, its job's name. */
  readonly name: string;
  /** A few lines that explain the failure. */
  readonly error: string;
}

export interface RunJobOptions {
  /** How much slower than without other load the machine may be now: a factor for the job's limits. */
  readonly slowness: () => number;
  readonly signal?: AbortSignal;
  /** Receives output as it arrives. */
  readonly onOutput?: (text: string) => void;
}

const reporter = resolve(import.meta.dirname, "event-reporter.ts");

/** Runs one job until it ends. A process that exceeds the job's limits is killed and counts as failed. */
export async function runJob(job: Job, options: RunJobOptions): Promise<JobResult> {
  const folder = mkdtempSync(join(tmpdir(), "berth-test-run-"));
  try {
    return await runIn(folder, job, options);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function runIn(folder: string, job: Job, { onOutput, slowness, signal }: RunJobOptions): Promise<JobResult> {
  const events = join(folder, "events");
  const startedAt = performance.now();
  let output = "";
  const keep = (chunk: Buffer) => {
    output += chunk.toString();
    onOutput?.(chunk.toString());
  };
  const args = job.isTest ? [...reporterArgs(events), ...job.args] : job.args;
  const env = process.env as Record<string, string>;
  const watch = watchProgress(() => readReports(events), job.limits, slowness);
  let left = "";
  watch.signal.addEventListener("abort", () => (left = describeProcesses(processesNaming(events))));
  const options = {
    ...{ cwd: process.cwd(), env, ownGroup: true, onStdout: keep, onStderr: keep },
    signal: AbortSignal.any([watch.signal, ...(signal === undefined ? [] : [signal])]),
  };
  const ended = await run({ file: process.execPath, args }, options).finally(watch.stop);
  const seconds = (performance.now() - startedAt) / 1000;
  if (watch.exceeded() !== "") keep(Buffer.from(`\n${watch.exceeded()}\n`));
  else if (ended.signal !== null) keep(Buffer.from(`\nEnded by ${ended.signal}.\n`));
  const counted = job.isTest ? countReports(readReports(events)) : { ...nothing, isGreen: true };
  const isGreen = ended.exitCode === 0 && counted.isGreen;
  const failed = [...counted.failed];
  if (watch.exceeded() !== "") failed.push({ name: job.name, error: `${watch.exceeded()}\n${left}` });
  else if (!isGreen && failed.length === 0) failed.push({ name: job.name, error: explainOutput(output) });
  return { ...counted, job, isGreen, failed, seconds, output };
}

/** Returns a line for each of the first children: what a hanging file waits for is often a process. */
function describeProcesses(processes: readonly ListedProcess[]): string {
  const lines = processes.slice(1, 21).map(({ pid, commandLine }) => `  ${pid} ${commandLine.slice(0, 200)}`);
  return ["Its children:", ...lines].join("\n");
}

function reporterArgs(events: string): readonly string[] {
  const specs = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
  return [...specs, `--test-reporter=${reporter}`, `--test-reporter-destination=${events}`];
}

function readReports(file: string): readonly Report[] {
  const lines = readTextIfAny(file)
    .split("\n")
    .filter((line) => line.endsWith("}"));
  return lines.map((line) => JSON.parse(line) as Report);
}

/** A file that cannot be loaded writes no report. */
function readTextIfAny(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const nothing = { isGreen: false, passed: 0, failed: [], skipped: [], processorSeconds: 0 };

/** Node exits with 0 even if a hook of the file fails, so the reports decide. Without the last report, nothing counts as passed. */
function countReports(reports: readonly Report[]) {
  const failed = reports.filter((report) => report.type === "failed");
  const skipped = reports.filter((report) => report.type === "skipped");
  const ended = reports.find((report) => report.type === "ended");
  return {
    isGreen: failed.length === 0 && ended?.isGreen === true,
    passed: reports.filter(({ type }) => type === "passed").length,
    failed: failed.map(({ name, error }) => ({ name, error })),
    skipped: skipped.map(({ name, reason }) => (reason === "" ? name : `${name} (${reason})`)),
    processorSeconds: ended?.processorSeconds ?? 0,
  };
}

interface Progress {
  /** Aborts when a test or the whole process has exceeded its limit. */
  readonly signal: AbortSignal;
  /** Returns a sentence that names the exceeded limit, else "". */
  readonly exceeded: () => string;
  readonly stop: () => void;
}

/** Watches the reports of a running process. Without any for the time that one test may take, the running test hangs. */
function watchProgress(
  reports: () => readonly Report[],
  { testSeconds, fileSeconds }: JobLimits,
  slowness: () => number,
): Progress {
  const aborter = new AbortController();
  const startedAt = performance.now();
  let sentence = "";
  let count = 0;
  let reportedAt = startedAt;
  const look = () => {
    const now = performance.now();
    const all = reports();
    if (all.length !== count) [count, reportedAt] = [all.length, now];
    const factor = slowness();
    if (now - reportedAt > testSeconds * 1000 * factor)
      sentence = `Killed: ${runningTest(all)} took longer than ${(testSeconds * factor).toFixed(0)} s.`;
    else if (now - startedAt > fileSeconds * 1000 * factor)
      sentence = `Killed: the file took longer than ${(fileSeconds * factor).toFixed(0)} s in total; measured-files.json has its usual time.`;
    if (sentence !== "") aborter.abort();
  };
  const timer = setInterval(look, 1000);
  return { signal: aborter.signal, exceeded: () => sentence, stop: () => clearInterval(timer) };
}

/** Returns the test that began last and has not ended, in quotes, else where in the file the process is. */
function runningTest(reports: readonly Report[]): string {
  const ended = reports.flatMap((report) => (report.type === "passed" || report.type === "failed" ? report.name : []));
  const running = reports.findLast((report) => report.type === "began" && !ended.includes(report.name));
  if (running !== undefined) return `the test "${(running as { name: string }).name}"`;
  const last = ended.at(-1);
  return `a hook, or the end of the file, ${last === undefined ? "before the first test ended" : `after "${last}"`},`;
}
