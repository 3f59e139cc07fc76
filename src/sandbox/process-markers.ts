import { setTimeout as sleep } from "node:timers/promises";
import { processIds, readProcessFile } from "../kit/processes.ts";

/**
 * Finds the processes of a sandbox by a marker, even those whose parents have died. Each state folder has its own markers. With a pid
 * namespace, the marker is in bubblewrap's command line: killing bubblewrap ends the whole namespace. Without one, it is in the
 * environment, which every child inherits.
 */
export type ProcessMarkers = ReturnType<typeof openProcessMarkers>;

const variableName = "BERTH_SANDBOX";

/** Opens the markers of a state folder, which `tag` (lower-case hexadecimal) identifies. */
export function openProcessMarkers(tag: string) {
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
    /** A bubblewrap option that has no other effect. */
    option: optionOf,
    variable: (id: string) => ({ [variableName]: `${tag}-${id}` }),
    /** Kills every process that carries the marker now, except `sparedPid`. Returns how many there were. */
    kill,
    /** Kills repeatedly until no process carries the marker: a process forked while its parent is being killed is missed at first. */
    async end(id: string) {
      for (let round = 0; round < 50 && kill(id) > 0; round += 1) await sleep(10);
    },
    /** The sandboxes that have running processes. */
    ids: () => [...new Set(others().flatMap((pid) => idOf(pid) ?? []))],
  };
}

const others = (): number[] => processIds().filter((pid) => pid !== process.pid);

function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has exited already.
  }
}
