import { readdirSync, readFileSync } from "node:fs";

/** A process of this machine, read from /proc. */
export interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  readonly uid: number;
  /** The arguments, joined by spaces. */
  readonly commandLine: string;
}

/** Returns all running processes, without zombies. */
export function listProcesses(): ListedProcess[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => readProcess(pid) ?? []);
}

/** Returns the processes whose arguments contain this text, and all their descendants. */
export function processesNaming(text: string): ListedProcess[] {
  const all = listProcesses();
  const found = new Map<number, ListedProcess>();
  const add = (process: ListedProcess): void => {
    if (found.has(process.pid)) return;
    found.set(process.pid, process);
    for (const child of all) if (child.parent === process.pid) add(child);
  };
  for (const process of all)
    if (process.pid !== globalThis.process.pid && process.commandLine.includes(text)) add(process);
  return [...found.values()];
}

/**
 * Returns the process that runs a command. A child bears the arguments of its parent until it runs a program of its own, so a parent comes
 * before its children.
 */
export function findProcess(runs: (commandLine: string) => boolean): ListedProcess | undefined {
  const found = listProcesses().filter(({ commandLine }) => runs(commandLine));
  return found.find(({ parent }) => !found.some(({ pid }) => pid === parent));
}

/** Sends SIGKILL to each process that still runs. */
export function killProcesses(processes: readonly ListedProcess[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // The process has already ended.
    }
  }
}

/** Reads a process. In /proc/PID/stat, state and parent follow the name (proc(5), fields 3 and 4). */
function readProcess(pid: string): ListedProcess | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === "Z" || state === "X") return undefined;
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
    const uid = Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
    return { pid: Number(pid), parent: Number(parent), uid, commandLine };
  } catch {
    return undefined;
  }
}
