import { statfs } from "node:fs/promises";
import { BuildRefused } from "../detection/failures.ts";
import { repeatEvery } from "../kit/repeat-every.ts";

export interface WatchedDisk {
  readonly disk: string;
  /** Measures how much of that disk the build uses; null when it took too long. */
  readonly measure: () => Promise<number | null>;
  readonly limitBytes: number;
}

const lookEveryMs = 500;
/** Measuring walks through all files, so it runs only once this much was written. Reading the free space takes one system call. */
const measureAfterBytes = 256 * 1024 ** 2;
/** Measure at least this often, in case other projects free as much as this build writes. */
const measureEveryMs = 30_000;

/** Watches how much of the disk a running build uses: until its end, temporary files take space from all projects. */
export function watchDisk({ disk, measure, limitBytes }: WatchedDisk) {
  const over = new AbortController();
  let measuredMs = Date.now();
  let mostFree = 0;
  const look = async () => {
    const free = await freeBytes(disk);
    mostFree = Math.max(mostFree, free);
    const afterBytes = Math.min(measureAfterBytes, limitBytes / 4);
    if (mostFree - free < afterBytes && Date.now() - measuredMs < measureEveryMs) return;
    const taken = await measure();
    [mostFree, measuredMs] = [free, Date.now()];
    if (taken !== null && taken > limitBytes) over.abort(refusal(limitBytes));
  };
  return {
    /** Aborts with a `BuildRefused` when the build uses more than the limit. */
    signal: over.signal,
    stop: repeatEvery(lookEveryMs, look),
  };
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

function refusal(limitBytes: number): BuildRefused {
  const mib = Math.round(limitBytes / 1024 ** 2);
  return new BuildRefused("build_output_too_large", {
    summary: `The build's files took more than ${mib} MiB of the disk while it ran.`,
    hint: "Let the build write less, temporary files and the package manager's cache included, or ask the operator to raise BERTH_BUILD_DISK_MIB.",
  });
}
