import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { startPlatform } from "../../test/e2e/platform.ts";
import { memoryRow, type BenchRow, type BenchStep } from "./row.ts";

const restMs = 15_000;
const mostMb = 150;

/**
 * Measures the memory of an idle platform without projects: all of Berth's own processes, with shared pages divided among them (PSS),
 * without its PostgreSQL. Measures the third start, when compiled code is cached.
 */
export async function measureMemory(): Promise<BenchRow> {
  const platform = await startPlatform();
  try {
    for (let start = 2; start <= 3; start += 1) {
      await platform.end("SIGINT");
      await platform.restart();
    }
    await sleep(restMs);
    const own = processesOf(platform.dataDir, platform.pid);
    const both = { ours: sum(own.map(proportionalMb)), theirs: mostMb, goal: 1 };
    const row = memoryRow(
      `idle memory, ${own.length} processes without PostgreSQL`,
      "what is meant to be enough",
      both,
    );
    return { ...row, steps: own.flatMap((pid) => partsOf(pid, pid === platform.pid ? "control plane" : "edge")) };
  } finally {
    await platform.destroy();
  }
}

/** Returns the control plane and the HAProxy processes whose arguments contain its data folder. */
function processesOf(dataDir: string, controlPlane: number): number[] {
  const others = readdirSync("/proc").filter((name) => {
    const words = /^\d+$/.test(name) ? readText(`/proc/${name}/cmdline`).split("\0") : [];
    return words[0]?.endsWith("haproxy") && words.some((word) => word.startsWith(`${dataDir}/`));
  });
  return [...new Set([controlPlane, ...others.map(Number)])];
}

/** proc(5): smaps_rollup is in kibibytes. */
function proportionalMb(pid: number): number {
  return Number(/^Pss:\s+(\d+)/m.exec(readText(`/proc/${pid}/smaps_rollup`))?.[1]) / 1024;
}

/** Divides a process's memory into its own (heaps, stacks) and its share of mapped files (Node.js itself, libraries). */
function partsOf(pid: number, name: string): BenchStep[] {
  const rollup = readText(`/proc/${pid}/smaps_rollup`);
  const mb = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(rollup)?.[1]) / 1024;
  return [
    { name: `${name}: heaps and stacks`, ours: mb("Pss_Anon"), theirs: null },
    { name: `${name}: Node.js and other files`, ours: mb("Pss_File") + mb("Pss_Shmem"), theirs: null },
  ];
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
