import { isAlive, sendSignal, type ProcessIdentity } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import type { Sandbox } from "../../sandbox/spec.ts";
import type { InstanceFolder } from "./instance-folder.ts";
import { readProcessTree, terminationTargets, type ShimPlace } from "../../kit/process-tree.ts";

/** Sends SIGTERM to the application, waits, then sends SIGKILL to all of its processes. Throws when even SIGKILL fails. */
export async function stopInstance(folder: InstanceFolder, sandbox: Sandbox, graceMs: number): Promise<void> {
  const shim = folder.shim();
  if (!shim) folder.giveUp();
  if (!shim || !isAlive(shim)) return;
  if (graceMs > 0) {
    const end = Date.now() + graceMs;
    await askToEnd(shim, { pid: shim.pid, hasPidNamespace: hasPidNamespace(sandbox) }, graceMs);
    if (await hasEnded(shim, end - Date.now())) return;
  }
  await killInstance(folder, sandbox, shim);
}

/** Returns whether applications here have a PID namespace, in which their main process has a known pid. */
export const hasPidNamespace = (sandbox: Sandbox): boolean => sandbox.describe().isolation.includes("namespaces");

/** Repeats SIGTERM until a process received it: a sandbox that was just started has no application yet. */
async function askToEnd(shim: ProcessIdentity, place: ShimPlace, timeoutMs: number): Promise<void> {
  const ask = () => {
    const targets = terminationTargets(readProcessTree(), place);
    for (const { pid } of targets) signal(pid, "SIGTERM");
    return targets.length > 0 || !isAlive(shim) || undefined;
  };
  await until(ask, { timeoutMs, atMostMs: 50 });
}

/** Sends SIGKILL to everything below the shim. Repeats it: a sandbox that is being set up has not joined its group yet. */
export async function killInstance(folder: InstanceFolder, sandbox: Sandbox, shim: ProcessIdentity): Promise<void> {
  const kill = () => {
    if (!isAlive(shim)) return true;
    sandbox.kill(folder.record.sandbox_id, shim.pid);
    for (const { pid } of readProcessTree().descendantsOf(shim.pid)) signal(pid, "SIGKILL");
    return undefined;
  };
  if (await until(kill, { timeoutMs: 30_000, firstMs: 20, atMostMs: 100 })) return;
  sendSignal(shim, "SIGKILL");
  if (!(await hasEnded(shim, 5000))) throw new Error(`an instance of ${folder.record.workload_id} does not end`);
}

async function hasEnded(shim: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  return (await until(() => (isAlive(shim) ? undefined : true), { timeoutMs, atMostMs: 50 })) === true;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process has already exited.
  }
}
