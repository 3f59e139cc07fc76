import { statfs } from "node:fs/promises";
import { BuildRefused } from "../detection/failures.ts";
import { lookEvery } from "../kit/look-every.ts";

export interface DiskWatch {
  /** Aborts with a `BuildRefused` when the build takes more than the limit. */
  readonly signal: AbortSignal;
  stop(): void;
}

export interface WatchedDisk {
  /** A folder on the disk. */
  readonly disk: string;
  /** Measures what the build takes of that disk; null when it took too long. */
  readonly measure: () => Promise<number | null>;
  readonly limitBytes: number;
}

const lookEveryMs = 500;
/** Measuring reads all names of folders; the free space, one system call, tells when something was written. */
const measureAfterBytes = 256 * 1024 ** 2;
/** In case other projects free as much as this build writes. */
const measureEveryMs = 30_000;

/**
 * Watches how much of the disk a running build takes. What it leaves is measured when it has ended, but until then its temporary files take
 * space from all projects.
 */
export function watchDisk({ disk, measure, limitBytes }: WatchedDisk): DiskWatch {
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
  return { signal: over.signal, stop: lookEvery(lookEveryMs, look) };
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
