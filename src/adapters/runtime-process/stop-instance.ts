import { isAlive, sendSignal, type ProcessIdentity } from "../../kit/processes.ts";
import { until } from "../../kit/retry.ts";
import type { Sandbox } from "../../kit/sandbox/spec.ts";
import type { InstanceFolder } from "./instance-folders.ts";
import { applicationProcesses, readProcessTree, terminationTargets } from "./process-tree.ts";

/** SIGTERM to the application, time to finish, then SIGKILL to all of it. Resolves when nothing of it runs. Throws when even that fails. */
export async function stopInstance(folder: InstanceFolder, sandbox: Sandbox, graceMs: number): Promise<void> {
  const shim = folder.shim();
  if (!shim) folder.giveUp();
  if (!shim || !isAlive(shim)) return;
  if (graceMs > 0) {
    const end = Date.now() + graceMs;
    await askToEnd(shim, graceMs);
    if (await hasEnded(shim, end - Date.now())) return;
  }
  await killInstance(folder, sandbox, shim);
}

/** A sandbox that was just started has no application yet to hear the signal. */
async function askToEnd(shim: ProcessIdentity, timeoutMs: number): Promise<void> {
  const ask = () => {
    const targets = terminationTargets(readProcessTree(), shim.pid);
    for (const { pid } of targets) signal(pid, "SIGTERM");
    return targets.length > 0 || !isAlive(shim) || undefined;
  };
  await until(ask, { timeoutMs, atMostMs: 50 });
}

/** SIGKILL to everything below the shim, which then writes how it ended. */
export async function killInstance(folder: InstanceFolder, sandbox: Sandbox, shim: ProcessIdentity): Promise<void> {
  // From the leaves up, so that nothing is started anew by a parent that sees its child die.
  const kill = () => {
    if (sandbox.kill(folder.record.sandbox_id)) return;
    const tree = readProcessTree();
    for (const { pid } of [...applicationProcesses(tree, shim.pid)].reverse()) signal(pid, "SIGKILL");
    for (const { pid } of tree.descendantsOf(shim.pid)) signal(pid, "SIGKILL");
  };
  kill();
  if (await hasEnded(shim, 2000)) return;
  kill();
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
