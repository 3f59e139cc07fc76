import { existsSync } from "node:fs";
import { run, type Command } from "../../kit/exec.ts";
import { readProcessFile } from "../../kit/processes.ts";

const prlimit = "/usr/bin/prlimit";

/**
 * Limits the private memory of a process and of those that it starts. PostgreSQL then reports `out_of_memory` for the statement that needs
 * more; without this limit, the kernel kills a session at the group's limit, and all other sessions end in the recovery.
 */
export async function limitMemory({ pid, uid }: { pid: number; uid: number }, bytes: number): Promise<void> {
  // As the process's own user: root in a container may lack the capability for the processes of others.
  const command = { file: prlimit, args: ["--pid", `${pid}`, `--data=${bytes}:${bytes}`] };
  if (existsSync(prlimit)) await run(command, { uid, gid: uid });
}

export function withMemoryLimit(bytes: number, command: Command): Command {
  if (!existsSync(prlimit)) return command;
  return { file: prlimit, args: [`--data=${bytes}:${bytes}`, command.file, ...command.args] };
}

export function hasMemoryLimit(pid: number): boolean {
  return /^Max data size\s+\d/m.test(readProcessFile(pid, "limits"));
}
