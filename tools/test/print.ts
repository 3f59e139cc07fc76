import type { Drawn } from "./draw-files.ts";
import type { JobResult } from "./run-job.ts";

const slowestShown = 10;

/** Prints how a job ended, and its output. `isShown`: the output was already printed as it arrived. */
export function printResult({ job, isGreen, output, seconds, processorSeconds }: JobResult, isShown: boolean): void {
  const spent = processorSeconds === 0 ? "" : `, processor ${processorSeconds.toFixed(1)} s`;
  const head = `${isGreen ? "ok " : "RED"} ${job.name} (${seconds.toFixed(1)} s${spent})`;
  console.log(isShown ? head : `${head}\n${indent(output)}`);
}

/** Prints which files the change added to a run, and which the run leaves out (draw-files.ts). */
export function printDraw({ reached, others }: Pick<Drawn, "reached" | "others">): void {
  const lines = others.map(({ file, row }) => `${file} (${row})`);
  printList(
    `CHANGED: ${reached.length} drawn files test what was changed:`,
    reached.map(({ file }) => file),
  );
  printList(
    `NOT DRAWN: ${others.length} files run another time, more of them in .ci/run, and all with npm test -- --every-file:`,
    lines,
  );
}

/** Prints what was skipped and why, what failed, the machine's CPU time, and the closing line. */
export function printSummary(results: readonly JobResult[], busySeconds: number): void {
  const skipped = results.flatMap((result) => result.skipped);
  const failed = results.flatMap((result) => result.failed);
  printList(`SKIPPED: ${skipped.length} tests or suites did NOT run here:`, skipped);
  if (results.length > slowestShown) printList("The slowest:", slowest(results));
  // At the end, so that the last lines of a log name the cause.
  printList(
    "FAILED:",
    failed.map(({ name, error }) => `${name}\n${indent(error)}`),
  );
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  console.log(`\nProcessor time of the whole machine: ${busySeconds.toFixed(0)} s`);
  console.log(`${passed} passed, ${failed.length} failed, ${skipped.length} skipped`);
}

function slowest(results: readonly JobResult[]): readonly string[] {
  const sorted = results.toSorted((one, other) => other.seconds - one.seconds).slice(0, slowestShown);
  return sorted.map(
    ({ job, seconds, processorSeconds }) =>
      `${seconds.toFixed(1)} s, processor ${processorSeconds.toFixed(1)} s: ${job.name}`,
  );
}

function printList(title: string, lines: readonly string[]): void {
  if (lines.length > 0) console.log(`\n${title}\n${lines.map((line) => `  - ${line}`).join("\n")}`);
}

/** Indents output, without the counts that the reporter adds to every process's output. */
function indent(output: string): string {
  const lines = output
    .trimEnd()
    .split("\n")
    .filter((line) => !/^ℹ (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /.test(line));
  return lines.map((line) => (line === "" ? "" : `    ${line}`)).join("\n");
}
