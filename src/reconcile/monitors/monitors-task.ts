import { availableParallelism } from "node:os";
import { statfs } from "node:fs/promises";
import { saveMachine, type MachineDescription } from "../../features/platform/platform.ts";
import { recordReports, retireMachine } from "../../features/status/status.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";
import { runCheck, type Check } from "./check.ts";
import { folderSizes } from "./folder-sizes.ts";
import { machineChecks, readMemory } from "./machine-checks.ts";
import { partChecks, type Probes } from "./part-checks.ts";
import { projectChecks } from "./project-checks.ts";

/** Looks at everything that is watched, writes down what it saw, and opens and resolves alerts. Any number may run at once. */
export function monitorsTask(platform: Platform, probes: Probes): Task {
  const { monitors } = platform.settings;
  // Projects' databases run at the primary control plane, which has git.
  const isPrimary = probes.roles.includes("git");
  const ofProjects = isPrimary ? projectChecks(platform) : [];
  const due = dueChecks([...machineChecks(platform), ...partChecks(platform, probes), ...ofProjects]);
  const describe = machineDescriber(platform, isPrimary);
  const startedAt = new Date();
  let begun = false;
  return {
    name: "monitors",
    periodMs: monitors.everyMs,
    topics: [],
    async run() {
      const isFirst = begun === false;
      begun = true;
      await saveMachine(platform.db, {
        name: monitors.machine,
        started_at: startedAt,
        description: await describe.now(),
      });
      // The others are being started at the same moment: what is not there yet is no failure, and a slow check must not delay the rest.
      if (isFirst) return { detail: "not looked yet", againMs: firstLookMs };
      const reports = await Promise.all(due().map((check) => runCheck(check, monitors.machine, platform.log)));
      await recordReports(platform, reports);
      const bad = reports
        .flatMap(({ findings }) => findings)
        .filter(({ status }) => status === "fail" || status === "unknown");
      return { detail: `${reports.length} checks, ${bad.length} findings that are bad` };
    },
    async settle() {
      await describe.settle();
      // The primary is missed while it is stopped; any other process may go.
      if (!isPrimary) await retireMachine(platform.db, monitors.machine);
    },
  };
}

const firstLookMs = 3000;

/** The checks whose turn it is, each time it is asked. */
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

// Walking through every file of the data folder is work for the disk.
const measureEveryMs = 600_000;
const firstMeasureMs = 30_000;

/** Describes this machine; the sizes of folders are measured beside, now and then. */
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
      return {
        version: monitors.version,
        cpus: availableParallelism(),
        memory_bytes: memory.total,
        runtime: name,
        network,
        isolation,
        missing,
        disk: { total_bytes: disk.blocks * disk.bsize, available_bytes: disk.bavail * disk.bsize, ...sizes },
        replica: { memory_bytes: workloadLimits.memoryBytes, cpus: workloadLimits.cpus },
      };
    },
    async settle(): Promise<void> {
      stopping.abort();
      await measuring;
    },
  };
}
