import measuredFiles from "./measured-files.json" with { type: "json" };
import type { Kind, TestFile } from "./test-files.ts";

/** The measured cost of long jobs on two cores: seconds, and CPU seconds. A missing file gets the usual cost of its kind. */
const measured = new Map(Object.entries(measuredFiles as unknown as Record<string, [number, number]>));
const usual: Readonly<Record<Kind, readonly [number, number]>> = {
  together: [12, 3],
  beside: [5, 1],
  platform: [30, 15],
  alone: [30, 15],
};

export function secondsOf(file: TestFile): number {
  return costOf(file)[0];
}

export function processorSecondsOf(file: TestFile): number {
  return costOf(file)[1];
}

function costOf({ file, kind, group }: TestFile): readonly [number, number] {
  return measured.get(kind === "together" ? group : file) ?? usual[kind];
}
