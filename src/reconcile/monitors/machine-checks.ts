import { readFile, statfs } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { ownDatabase } from "../../features/status/status.ts";
import type { Platform } from "../platform.ts";
import type { Check } from "./check.ts";
import {
  evaluateClock,
  evaluateDisk,
  evaluateInodes,
  evaluateLoad,
  evaluateMemory,
  parseMeminfo,
  type MemoryUse,
} from "./evaluate-machine.ts";

const minuteMs = 60_000;

export function machineChecks({ db, settings: { monitors } }: Platform): readonly Check[] {
  const { dataDir, disk, memory } = monitors;
  const scope = "machine";
  return [
    {
      name: "disk",
      scope,
      patience: { warnMs: 5 * minuteMs, failMs: 0 },
      async look() {
        const { bsize, blocks, bfree, bavail } = await statfs(dataDir);
        return [evaluateDisk({ total: blocks * bsize, free: bfree * bsize, available: bavail * bsize }, disk)];
      },
    },
    {
      name: "inodes",
      scope,
      patience: { warnMs: 5 * minuteMs, failMs: 0 },
      async look() {
        const { files, ffree } = await statfs(dataDir);
        return [evaluateInodes({ total: files, free: ffree }, disk)];
      },
    },
    {
      name: "memory",
      scope,
      patience: { warnMs: 10 * minuteMs, failMs: 2 * minuteMs },
      look: async () => [evaluateMemory(await readMemory(), memory)],
    },
    {
      name: "load",
      scope,
      patience: { warnMs: 15 * minuteMs, failMs: null },
      look: async () => [evaluateLoad(loadavg()[1] ?? 0, availableParallelism(), monitors.loadWarn)],
    },
    {
      name: "clock",
      scope,
      patience: { warnMs: 5 * minuteMs, failMs: minuteMs },
      async look() {
        const before = Date.now();
        const { now } = await ownDatabase(db);
        const after = Date.now();
        return [evaluateClock(Date.parse(now) - (before + after) / 2, (after - before) / 2)];
      },
    },
  ];
}

/** Reads the memory of the machine, or of the container in which the control plane runs. */
export async function readMemory(): Promise<MemoryUse> {
  const machine = parseMeminfo(await readFile("/proc/meminfo", "utf8"));
  const limit = process.constrainedMemory();
  if (limit === 0 || limit >= machine.total) return machine;
  return { total: limit, available: Math.min(machine.available, process.availableMemory()) };
}
