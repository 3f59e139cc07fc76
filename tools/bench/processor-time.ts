import { readdirSync, readFileSync } from "node:fs";
import { listProcesses } from "../../test/e2e/processes.ts";
import type { TestPlatform } from "../../test/e2e/platform.ts";

/** Returns the CPU seconds that the platform's own processes have used: the control plane, the edge, and its PostgreSQL. */
export function processorSeconds({ dataDir, pid }: Pick<TestPlatform, "dataDir" | "pid">): number {
  const all = listProcesses();
  const isOwn = (line: string) => line.includes(`${dataDir}/edge`) || line.includes(`${dataDir}/control-database`);
  const roots = all.filter(({ commandLine }) => isOwn(commandLine)).map((each) => each.pid);
  const own = new Set(roots);
  for (let known = -1; known < own.size;) {
    known = own.size;
    for (const each of all) if (own.has(each.parent)) own.add(each.pid);
  }
  return [pid, ...own].reduce((sum, each) => sum + ownSeconds(each), 0);
}

/** Returns the CPU seconds that these processes have used since their start. */
export const secondsOfProcesses = (pids: readonly number[]) => pids.reduce((sum, pid) => sum + ownSeconds(pid), 0);

/** Returns the CPU seconds that a process and its present children have used since their start, to the nanosecond. */
export function secondsOfTree(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  return [pid, ...children.map(Number)].reduce((sum, each) => sum + scheduledSeconds(each), 0);
}

/** Returns the CPU seconds of all threads (proc(5): the first field, in nanoseconds). */
function scheduledSeconds(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const times = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  return times.reduce((sum, time) => sum + Number(time) / 1e9, 0);
}

/** Returns the CPU seconds of a process and the children that it has waited for (proc(5): fields 14 to 17, in ticks of 10 ms). */
function ownSeconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) / 100, 0);
  } catch {
    return 0;
  }
}
