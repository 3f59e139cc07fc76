import { resolve } from "node:path";

import { secondsOf } from "./measured-files.ts";
import type { Kind, TestFile } from "./test-files.ts";

export interface Job {
  readonly name: string;
  readonly args: readonly string[];
  readonly isTest: boolean;
  /** The share of the machine's capacity that it uses while it runs. */
  readonly weight: number;
  /** How long one of its tests may take, and how long the whole process, on a machine without other load. */
  readonly limits: JobLimits;
}

export interface JobLimits {
  readonly testSeconds: number;
  readonly fileSeconds: number;
}

/** More than the number of cores, because most files wait more than they compute. */
export const capacity = 8;
/** The limit of a quick test. A test that hangs is red within a minute of its file's start. */
const shortestSeconds = 45;
/** With every case (test/support/draw-cases.ts), a file takes much longer than measured. */
const everyCase: JobLimits = { testSeconds: 900, fileSeconds: 3600 };
const weights: Readonly<Record<Kind, number>> = { together: 1, beside: 1, platform: 2, alone: capacity };

/** Turns test files into jobs, longest first, so that no long job is left at the end. */
export function planJobs(files: readonly TestFile[]): readonly Job[] {
  const groups = Map.groupBy(files, ({ file, kind, group }) => (kind === "together" ? group : file));
  return [...groups.values()].toSorted(compareGroups).map(jobOf);
}

function compareGroups(one: readonly TestFile[], other: readonly TestFile[]): number {
  const [first, second] = [one[0] as TestFile, other[0] as TestFile];
  const alone = Number(first.kind === "alone") - Number(second.kind === "alone");
  return alone || secondsOf(second) - secondsOf(first) || linesOf(other) - linesOf(one);
}

function linesOf(files: readonly TestFile[]): number {
  return files.reduce((sum, { lines }) => sum + lines, 0);
}

function jobOf(files: readonly TestFile[]): Job {
  const [{ file, kind, group }] = files as readonly [TestFile];
  const job = { weight: weights[kind], isTest: true, limits: limitsOf(files as readonly [TestFile]) };
  if (files.length === 1) return { ...job, name: file, args: [file] };
  const args = [resolve(import.meta.dirname, "import-files.ts"), ...files.map((each) => each.file)];
  return { ...job, name: `${files.length} ${group} files in one process`, args };
}

/** A single test may take as long as its whole file usually does, so only one that hangs reaches its limit. */
function limitsOf([first]: readonly [TestFile]): JobLimits {
  if (process.env["BERTH_TEST_ALL"] !== undefined) return everyCase;
  const seconds = secondsOf(first);
  const testSeconds = first.kind === "together" ? shortestSeconds : Math.max(shortestSeconds, seconds);
  return { testSeconds, fileSeconds: Math.max(3 * shortestSeconds, 5 * seconds) };
}
