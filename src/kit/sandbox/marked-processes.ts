import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** An option of bubblewrap that does nothing but make its processes known by the sandbox's id; those of a dead parent too. */
export const sandboxMark = (id: string): string[] => ["--unsetenv", `berth-${id}`];

/**
 * Kills every process that carries the sandbox's mark, until none is found: one that was being made when its parent was killed
 * is no child of anybody we know. Killing bubblewrap's own first process ends all others of its pid namespace.
 */
export async function killMarked(id: string): Promise<void> {
  const mark = `\0${sandboxMark(id).join("\0")}\0`;
  for (let round = 0; round < 50; round += 1) {
    const found = processIds().filter((pid) => commandLine(pid).includes(mark));
    if (found.length === 0) return;
    for (const pid of found) kill(Number(pid));
    await sleep(10);
  }
}

const processIds = (): string[] =>
  readdirSync("/proc").filter((name) => /^\d+$/.test(name) && name !== String(process.pid));

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
