import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { run } from "../../src/kit/exec.ts";

/**
 * Gives `pid` a processor of its own and this process the others, so that a measurement shows the cost of `pid` and not the scheduler's.
 * Resolves with a function that lets this process use all processors again; undefined without taskset(1) or with only one processor.
 */
export async function separateProcessors(pid: number): Promise<(() => Promise<void>) | undefined> {
  const before = /^Cpus_allowed_list:\s+(\S+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  const count = availableParallelism();
  if (before === undefined || count < 2) return undefined;
  const isPinned = (await pin(pid, "0")) && (await pin(process.pid, `1-${count - 1}`));
  return isPinned ? async () => void (await pin(process.pid, before)) : undefined;
}

async function pin(pid: number, processors: string): Promise<boolean> {
  const args = ["--all-tasks", "--cpu-list", "--pid", processors, `${pid}`];
  const outcome = await run({ file: "taskset", args }).catch(() => undefined);
  return outcome?.exitCode === 0;
}
