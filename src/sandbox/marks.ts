import { setTimeout as sleep } from "node:timers/promises";
import { processIds, readProcessFile } from "../kit/processes.ts";

/**
 * Makes the processes of each sandbox known by its id, also those whose parents have died. Marks of one state folder are not those of another.
 * Where a pid namespace holds a sandbox together, bubblewrap's command line carries the mark: its end is the end of all of them.
 * Without one, the environment carries it, which every child inherits.
 */
export interface Marks {
  /** An option of bubblewrap that does nothing else. */
  option(id: string): string[];
  variable(id: string): Readonly<Record<string, string>>;
  /** Kills every process that carries the mark now, but one, and tells how many there were. */
  kill(id: string, sparedPid?: number): number;
  /** Kills again and again until none is found: one that was being made when its parent was killed is no child of anybody we know. */
  end(id: string): Promise<void>;
  /** The sandboxes of which something runs. */
  ids(): readonly string[];
}

const variableName = "BERTH_SANDBOX";

/** `tag` names the state folder: lower-case hexadecimal. */
export function openMarks(tag: string): Marks {
  const optionOf = (id: string) => ["--unsetenv", `berth-${tag}-${id}`];
  const found = new RegExp(`\0--unsetenv\0berth-${tag}-([a-z0-9_-]+)\0|(?:^|\0)${variableName}=${tag}-([a-z0-9_-]+)\0`);
  const idOf = (pid: number) => {
    const match = found.exec(`${readProcessFile(pid, "cmdline")}\0${readProcessFile(pid, "environ")}`);
    return match?.[1] ?? match?.[2];
  };
  const kill = (id: string, sparedPid?: number) => {
    const pids = others().filter((pid) => pid !== sparedPid && idOf(pid) === id);
    for (const pid of pids) killProcess(pid);
    return pids.length;
  };
  return {
    option: optionOf,
    variable: (id) => ({ [variableName]: `${tag}-${id}` }),
    kill,
    async end(id) {
      for (let round = 0; round < 50 && kill(id) > 0; round += 1) await sleep(10);
    },
    ids: () => [...new Set(others().flatMap((pid) => idOf(pid) ?? []))],
  };
}

const others = (): number[] => processIds().filter((pid) => pid !== process.pid);

function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
