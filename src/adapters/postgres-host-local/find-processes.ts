import { statSync } from "node:fs";
import { basename } from "node:path";
import { identify, isAlive, processIds, readProcessFile, type ProcessIdentity } from "../../kit/processes.ts";

export interface ServerProcesses {
  readonly postmaster: ProcessIdentity | undefined;
  /** The postmaster's children, which survive if the postmaster is killed. */
  readonly others: readonly ProcessIdentity[];
}

/**
 * Finds the live processes of the instance with this mark. The mark is its `cluster_name`, which is an argument of the postmaster and part
 * of every child's title; `uid` rules out foreign processes with an imitated title.
 */
export function findProcesses(mark: string, uid: number): ServerProcesses {
  const others: ProcessIdentity[] = [];
  let postmaster: ProcessIdentity | undefined;
  for (const pid of processIds()) {
    const role = roleOf(pid, mark, uid);
    const identity = role && identify(pid);
    if (identity === undefined || !isAlive(identity)) continue;
    if (role === "postmaster") postmaster = identity;
    else others.push(identity);
  }
  return { postmaster, others };
}

/** Finds the postmaster's child that has this process id in the server's PID namespace, which a sandbox gives it. */
export function findSession(postmaster: number, processId: number): number | undefined {
  const children = readProcessFile(postmaster, `task/${postmaster}/children`).split(" ").filter(Boolean).map(Number);
  return children.find((pid) => /^NSpid:.*\t(\d+)$/m.exec(readProcessFile(pid, "status"))?.[1] === `${processId}`);
}

function roleOf(pid: number, mark: string, uid: number): "postmaster" | "child" | undefined {
  try {
    if (statSync(`/proc/${pid}`).uid !== uid) return undefined;
    const line = readProcessFile(pid, "cmdline");
    if (line.startsWith(`postgres: ${mark}: `)) return "child";
    const [file, ...args] = line.split("\0");
    return basename(file as string) === "postgres" && args.includes(`cluster_name=${mark}`) ? "postmaster" : undefined;
  } catch {
    return undefined;
  }
}
