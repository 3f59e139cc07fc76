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
const weights: Readonly<Record<Kind, number>> = { pure: 1, beside: 1, platform: 2, alone: capacity };
/** What starts first: long files, so that none of them is still running when all others have ended. */
const order: readonly Kind[] = ["platform", "beside", "pure", "alone"];
const slowFolders = /^(?:src\/adapters|test)\//;

/** Turns test files into jobs, in the order in which they start. */
export function planJobs(files: readonly TestFile[]): readonly Job[] {
  const pure = files.filter(({ kind }) => kind === "pure");
  const others = files.filter(({ kind }) => kind !== "pure").toSorted(compareFiles);
  const jobs = others.map(({ file, kind }) => testJob(file, [file], weights[kind]));
  const isBehindPure = others.findIndex(({ kind }) => order.indexOf(kind) > order.indexOf("pure"));
  return pure.length === 0 ? jobs : jobs.toSpliced(isBehindPure < 0 ? jobs.length : isBehindPure, 0, pureJob(pure));
}

function compareFiles(one: TestFile, other: TestFile): number {
  const byKind = order.indexOf(one.kind) - order.indexOf(other.kind);
  const bySpeed = Number(slowFolders.test(other.file)) - Number(slowFolders.test(one.file));
  return byKind || bySpeed || other.lines - one.lines;
}

function pureJob(files: readonly TestFile[]): Job {
  const [first] = files;
  if (files.length === 1 && first !== undefined) return testJob(first.file, [first.file], weights.pure);
  const args = [resolve(import.meta.dirname, "import-files.ts"), ...files.map(({ file }) => file)];
  return testJob(`${files.length} pure files in one process`, args, weights.pure);
}

function testJob(name: string, args: readonly string[], weight: number): Job {
  return { name, args, weight, isTest: true };
}
