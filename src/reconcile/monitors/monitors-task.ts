import { readFile, statfs } from "node:fs/promises";
import { availableParallelism, cpus, loadavg } from "node:os";
import { addMachineSample } from "../../features/metrics/metrics.ts";
import { saveMachine, type MachineDescription } from "../../features/platform/platform.ts";
import { ownDatabase, recordReports, retireMachine } from "../../features/status/status.ts";
import { run } from "../../kit/exec.ts";
import type { Task, Platform } from "../platform.ts";
import { runCheck, type Check } from "./check.ts";
import {
  evaluateClock,
  evaluateDisk,
  evaluateInodes,
  evaluateLoad,
  evaluateMemory,
  memoryWithin,
  parseMeminfo,
  type MemoryUse,
} from "./evaluate-machine.ts";
import { partChecks, type Probes } from "./part-checks.ts";
import { projectChecks } from "./project-checks.ts";

/** Runs all checks, stores their findings, and opens and resolves alerts. Any number of processes may do so concurrently. */
export function monitorsTask(platform: Platform, probes: Probes): Task {
  const { monitors } = platform.settings;
  // Projects' databases run on the primary control plane, which is the one with git.
  const isPrimary = probes.roles.includes("git");
  const ofProjects = isPrimary ? projectChecks(platform) : [];
  const due = dueChecks([...machineChecks(platform), ...partChecks(platform, probes), ...ofProjects]);
  const describe = machineDescriber(platform, isPrimary);
  const busyCpus = createCpuMeter();
  const startedAt = new Date();
  let begun = false;
  return {
    name: "monitors",
    periodMs: monitors.everyMs,
    topics: [],
    async run() {
      const isFirst = begun === false;
      begun = true;
      const description = await describe.now();
      await saveMachine(platform.db, { name: monitors.machine, started_at: startedAt, description });
      // Check nothing in the first run: other tasks are still starting, so what is missing yet is not a failure, and a slow check would delay them.
      if (isFirst) return { detail: "not checked yet", againMs: firstLookMs };
      const { disk } = description;
      const memory = await readMemory();
      const sample = {
        ...{ machine: monitors.machine, cpus: busyCpus(), memory_bytes: memory.total - memory.available },
        disk_bytes: disk.total_bytes - disk.available_bytes,
      };
      await addMachineSample(platform.db, sample, platform.clock.now());
      const reports = await Promise.all(due().map((check) => runCheck(check, monitors.machine, platform.log)));
      await recordReports(platform, reports);
      const bad = reports
        .flatMap(({ findings }) => findings)
        .filter(({ status }) => status === "fail" || status === "unknown");
      return { detail: `${reports.length} checks, ${bad.length} findings that are bad` };
    },
    async settle() {
      await describe.settle();
      // A stopped primary should be reported as missing; any other process may leave.
      if (!isPrimary) await retireMachine(platform.db, monitors.machine);
    },
  };
}

const firstLookMs = 3000;

/** Returns a function that measures how many processors of the machine were in use since its last call. */
function createCpuMeter(): () => number {
  const read = () => {
    const times = cpus().map((cpu) => cpu.times);
    const sum = (pick: (time: (typeof times)[number]) => number) => times.reduce((all, time) => all + pick(time), 0);
    return {
      idle: sum(({ idle }) => idle),
      all: sum(({ user, nice, sys, idle, irq }) => user + nice + sys + idle + irq),
    };
  };
  let before = read();
  return () => {
    const now = read();
    const [idle, all] = [now.idle - before.idle, now.all - before.all];
    before = now;
    return all <= 0 ? 0 : (1 - idle / all) * cpus().length;
  };
}

function dueChecks(checks: readonly Check[]): () => readonly Check[] {
  const lookedAt = new Map<string, number>();
  return () => {
    const now = performance.now();
    const chosen = checks.filter(({ name, everyMs = 0 }) => now - (lookedAt.get(name) ?? -Infinity) >= everyMs);
    for (const { name } of chosen) lookedAt.set(name, now);
    return chosen;
  };
}

const runsNothing = { name: "none", network: "none", isolation: [], missing: [] };

// Measure rarely: walking through all files of the data folder loads the disk.
const measureEveryMs = 600_000;
const firstMeasureMs = 30_000;

/** Describes this machine; folder sizes are measured in the background from time to time. */
function machineDescriber(platform: Platform, isPrimary: boolean) {
  const { monitors, workloadLimits } = platform.settings;
  const stopping = new AbortController();
  let sizes: Pick<MachineDescription["disk"], "used_bytes" | "measured_at"> = { used_bytes: null, measured_at: null };
  let begunAt = performance.now() + firstMeasureMs - measureEveryMs;
  let measuring: Promise<void> = Promise.resolve();

  async function measure(): Promise<void> {
    const used_bytes = await folderSizes(monitors.folders, stopping.signal).catch((error: unknown) => {
      platform.log.warn({ err: error }, "could not measure the data folder");
      return null;
    });
    if (used_bytes !== null) sizes = { used_bytes, measured_at: new Date().toISOString() };
  }

  return {
    async now(): Promise<MachineDescription> {
      if (performance.now() - begunAt >= measureEveryMs) {
        begunAt = performance.now();
        measuring = measure();
      }
      const [disk, memory, runtime] = await Promise.all([
        statfs(monitors.dataDir),
        readMemory(),
        isPrimary ? platform.ports.runtime.describe() : runsNothing,
      ]);
      const { name, network, isolation, missing } = runtime;
      const usable = disk.blocks - disk.bfree + disk.bavail;
      return {
        version: monitors.version,
        cpus: availableParallelism(),
        memory_bytes: memory.total,
        runtime: name,
        network,
        isolation,
        missing,
        disk: { total_bytes: usable * disk.bsize, available_bytes: disk.bavail * disk.bsize, ...sizes },
        replica: { memory_bytes: workloadLimits.memoryBytes, cpus: workloadLimits.cpus },
      };
    },
    async settle(): Promise<void> {
      stopping.abort();
      await measuring;
    },
  };
}

const timeoutMs = 120_000;

/** Returns how much disk space each folder uses, in bytes, by name; a missing folder uses none. Null if that takes more than two minutes. */
export async function folderSizes(
  folders: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Readonly<Record<string, number>> | null> {
  // Without operands du would measure the current folder.
  if (Object.keys(folders).length === 0) return {};
  const args = ["-n", "19", "du", "-sx", "-B1", "--", ...Object.values(folders)];
  const result = await run({ file: "nice", args }, { timeoutMs, signal });
  if (result.timedOut || signal.aborted) return null;
  // du exits with 1 if a file disappeared while it ran; its output is valid all the same.
  const sizes = new Map(
    result.stdout.split("\n").map((line) => [line.slice(line.indexOf("\t") + 1), Number(line.split("\t")[0])]),
  );
  return Object.fromEntries(Object.entries(folders).map(([name, folder]) => [name, sizes.get(folder) ?? 0]));
}

const minuteMs = 60_000;

function machineChecks({ db, settings: { monitors } }: Platform): readonly Check[] {
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
async function readMemory(): Promise<MemoryUse> {
  const machine = parseMeminfo(await readFile("/proc/meminfo", "utf8"));
  return memoryWithin(machine, { total: process.constrainedMemory(), available: process.availableMemory() });
}
