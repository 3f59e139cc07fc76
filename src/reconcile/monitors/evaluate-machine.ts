import type { Finding } from "../../features/status/status.ts";
import { bytesText, counted } from "../../kit/bytes-text.ts";
import { overall, spanText } from "./check.ts";

export interface Thresholds {
  readonly warnPercent: number;
  readonly failPercent: number;
}

/** Numbers of a file system from statfs(2); `available` is what users other than root can use. */
export interface DiskUse {
  readonly total: number;
  readonly free: number;
  readonly available: number;
}

// PostgreSQL's write-ahead log alone may need this much at once.
const leastBytes = 512 * 1024 ** 2;

/** Evaluates the space on the data folder's disk. `fail` means that writes are about to be refused. */
export function evaluateDisk({ total, free, available }: DiskUse, thresholds: Thresholds): Finding {
  const used = total - free;
  const percent = (100 * used) / Math.max(1, used + available);
  // Like df: space that the file system reserves for root counts neither as used nor as free.
  const detail = `${bytesText(available)} of ${bytesText(used + available)} is free on the data folder's disk (${percent.toFixed(0)} % used).`;
  const hint = "`berth platform` shows what uses the space. Free space, or give the data folder a larger disk.";
  return available < leastBytes ? overall("fail", detail, hint) : evaluateShare(percent, thresholds, { detail, hint });
}

function evaluateShare(
  percent: number,
  { warnPercent, failPercent }: Thresholds,
  { detail, hint }: { readonly detail: string; readonly hint: string },
): Finding {
  if (percent >= failPercent) return overall("fail", detail, hint);
  return percent >= warnPercent ? overall("warn", detail, hint) : overall("ok", detail);
}

/** Evaluates how many more files the data folder's disk can hold. Some file systems have no such limit: total 0. */
export function evaluateInodes({ total, free }: Pick<DiskUse, "total" | "free">, thresholds: Thresholds): Finding {
  if (total === 0) return overall("ok", "The file system does not limit the number of files.");
  const percent = (100 * (total - free)) / total;
  const detail = `The data folder's disk uses ${percent.toFixed(0)} % of its inodes, which limit how many files it can hold.`;
  const hint =
    "Caches and old releases hold the most files. Delete files, or give the data folder a file system with more inodes.";
  return evaluateShare(percent, thresholds, { detail, hint });
}

export interface MemoryUse {
  readonly total: number;
  readonly available: number;
}

/** Parses MemTotal and MemAvailable of `/proc/meminfo`, in bytes. */
export function parseMeminfo(text: string): MemoryUse {
  const read = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? Number.NaN) * 1024;
  const use = { total: read("MemTotal"), available: read("MemAvailable") };
  if (Number.isNaN(use.total + use.available))
    throw new Error("/proc/meminfo does not say how much memory is available");
  return use;
}

/** Returns the memory of a machine's container. One without a limit has a total of 0, or more than the machine. */
export function memoryWithin(machine: MemoryUse, container: MemoryUse): MemoryUse {
  if (container.total === 0 || container.total >= machine.total) return machine;
  return { total: container.total, available: Math.min(machine.available, container.available) };
}

/** Evaluates the memory that programs can still allocate without swapping. */
export function evaluateMemory({ total, available }: MemoryUse, thresholds: Thresholds): Finding {
  const percent = (100 * (total - available)) / total;
  const detail = `${percent.toFixed(0)} % of ${bytesText(total)} is in use; ${bytesText(available)} is available.`;
  const hint =
    "`berth platform` shows how much memory all replicas together may use. Lower BERTH_APP_MEMORY_MIB or scale down, or add memory.";
  return evaluateShare(percent, thresholds, { detail, hint });
}

/** Evaluates the five-minute load average. Never fails: a busy machine is slow, not broken. */
export function evaluateLoad(load: number, cpus: number, warnPerCpu: number): Finding {
  const detail = `The average load of the last five minutes is ${load.toFixed(1)} on ${counted(cpus, "processor")}.`;
  if (load / cpus < warnPerCpu) return overall("ok", detail);
  return overall(
    "warn",
    detail,
    "Builds and applications wait for processors: allow fewer builds at once, or add processors.",
  );
}

const skewMs = { warn: 1000, fail: 10_000 };

/** Evaluates how far this machine's clock differs from the database's. `windowMs`: half of the query's time, the precision. */
export function evaluateClock(differenceMs: number, windowMs: number): Finding {
  const sureMs = Math.max(0, Math.abs(differenceMs) - windowMs);
  const detail = `The clock differs from the database's by ${Math.round(Math.abs(differenceMs))} ms (within ${Math.round(windowMs)} ms).`;
  const hint = "Run a time service (chrony, systemd-timesyncd) on both machines: cron jobs depend on this clock.";
  if (sureMs >= skewMs.fail)
    return overall("fail", `The clock is ${spanText(sureMs / 1000)} off the database's.`, hint);
  return sureMs >= skewMs.warn ? overall("warn", detail, hint) : overall("ok", detail);
}
