import { resolve } from "node:path";

import type { Kind, TestFile } from "./test-files.ts";

/** One process of the run. */
export interface Job {
  readonly name: string;
  readonly args: readonly string[];
  readonly isTest: boolean;
  /** How much of the machine's capacity it holds while it runs. */
  readonly weight: number;
}

/** Most files wait more than they compute, so more of them run at once than there are cores. */
export const capacity = 5;
const weights: Readonly<Record<Kind, number>> = { together: 1, beside: 1, platform: 2, alone: capacity };
/** What starts first: long files, so that none of them is still running when all others have ended. */
const order: readonly Kind[] = ["platform", "beside", "together", "alone"];
const slowFolders = /^(?:src\/adapters|test)\//;

/** Turns test files into jobs, in the order in which they start. */
export function planJobs(files: readonly TestFile[]): readonly Job[] {
  const groups = Map.groupBy(files, ({ file, kind, group }) => (kind === "together" ? group : file));
  return [...groups.values()].toSorted(compareGroups).map(jobOf);
}

function compareGroups(one: readonly TestFile[], other: readonly TestFile[]): number {
  const [first, second] = [one[0] as TestFile, other[0] as TestFile];
  const byKind = order.indexOf(first.kind) - order.indexOf(second.kind);
  const bySpeed = Number(isSlow(second)) - Number(isSlow(first));
  return byKind || bySpeed || linesOf(other) - linesOf(one);
}

function isSlow({ file, kind }: TestFile): boolean {
  return kind !== "together" && slowFolders.test(file);
}

function linesOf(files: readonly TestFile[]): number {
  return files.reduce((sum, { lines }) => sum + lines, 0);
}

function jobOf(files: readonly TestFile[]): Job {
  const [{ file, kind, group }] = files as readonly [TestFile];
  const job = { weight: weights[kind], isTest: true };
  if (files.length === 1) return { ...job, name: file, args: [file] };
  const args = [resolve(import.meta.dirname, "import-files.ts"), ...files.map((each) => each.file)];
  return { ...job, name: `${files.length} ${group} files in one process`, args };
}
