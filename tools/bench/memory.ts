import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { startPlatform } from "../../test/e2e/platform.ts";
import { listProcesses } from "../../test/e2e/processes.ts";
import { goalRow, type BenchRow, type BenchStep } from "./row.ts";

const restMs = 15_000;

/** Measures an idle platform's own processes (PSS), without its PostgreSQL, at the third start, when compiled code is cached. */
export async function measureMemory(): Promise<BenchRow> {
  await using platform = await startPlatform();
  for (let start = 2; start <= 3; start += 1) {
    await platform.end("SIGINT");
    await platform.restart();
  }
  await sleep(restMs);
  const own = processesOf(platform.dataDir, platform.pid);
  const ours = own.reduce((total, pid) => total + mbOf(pid)("Pss"), 0);
  const name = `idle memory, ${own.length} processes without PostgreSQL`;
  const row = goalRow(name, ours, { goal: 150, unit: "MB" });
  return { ...row, steps: own.flatMap((pid) => partsOf(pid, pid === platform.pid ? "control plane" : "edge")) };
}

/** Returns the control plane and the HAProxy processes whose arguments contain its data folder. */
function processesOf(dataDir: string, controlPlane: number): number[] {
  const isEdge = (line: string) => line.split(" ")[0]?.endsWith("haproxy") && line.includes(` ${dataDir}/`);
  const others = listProcesses().filter(({ commandLine }) => isEdge(commandLine));
  return [...new Set([controlPlane, ...others.map(({ pid }) => pid)])];
}

/** Divides a process's memory into its own (heaps, stacks) and its share of mapped files (Node.js itself, libraries). */
function partsOf(pid: number, name: string): BenchStep[] {
  const mb = mbOf(pid);
  return [
    { name: `${name}: heaps and stacks`, ours: mb("Pss_Anon"), theirs: null },
    { name: `${name}: Node.js and other files`, ours: mb("Pss_File") + mb("Pss_Shmem"), theirs: null },
  ];
}

/** Returns the memory of a process in MB; 0 if it has ended since it was listed. */
export function pssOf(pid: number): number {
  try {
    return mbOf(pid)("Pss");
  } catch {
    return 0;
  }
}

/** proc(5): smaps_rollup is in kibibytes. */
function mbOf(pid: number): (field: string) => number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return (field) => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(rollup)?.[1]) / 1024;
}
