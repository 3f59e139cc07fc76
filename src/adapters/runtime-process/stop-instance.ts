import { isAlive, sendSignal, type ProcessIdentity } from "../../kit/processes.ts";
import { until } from "../../kit/until.ts";
import type { Sandbox } from "../../sandbox/spec.ts";
import type { InstanceFolder } from "./instance-folder.ts";
import { readProcessTree, terminationTargets, type ShimPlace } from "../../kit/process-tree.ts";

/** SIGTERM to the application, time to finish, then SIGKILL to all of it. Resolves when nothing of it runs. Throws when even that fails. */
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

/** Whether applications here have a pid namespace, so that their main process has a known number in it. */
export const hasPidNamespace = (sandbox: Sandbox): boolean => sandbox.describe().isolation.includes("namespaces");

/** A sandbox that was just started has no application yet to hear the signal. */
async function askToEnd(shim: ProcessIdentity, place: ShimPlace, timeoutMs: number): Promise<void> {
  const ask = () => {
    const targets = terminationTargets(readProcessTree(), place);
    for (const { pid } of targets) signal(pid, "SIGTERM");
    return targets.length > 0 || !isAlive(shim) || undefined;
  };
  await until(ask, { timeoutMs, atMostMs: 50 });
}

/** SIGKILL to everything below the shim, which then writes how it ended. Again and again: a sandbox in the making has joined no group yet. */
export async function killInstance(folder: InstanceFolder, sandbox: Sandbox, shim: ProcessIdentity): Promise<void> {
  const kill = () => {
    if (!isAlive(shim)) return true;
    sandbox.kill(folder.record.sandbox_id, shim.pid);
    for (const { pid } of readProcessTree().descendantsOf(shim.pid)) signal(pid, "SIGKILL");
    return undefined;
  };
  if (await until(kill, { timeoutMs: 3000, firstMs: 20, atMostMs: 100 })) return;
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
    // It has ended by itself.
  }
}
