import { statSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../kit/processes.ts";
import type { Sandbox } from "../../sandbox/spec.ts";
import type { Instance, InstanceExit } from "../../ports/runtime.ts";
import { hasPidNamespace } from "./stop-instance.ts";
import { currentBoot, type InstanceFolder } from "./instance-folder.ts";

/** Returns whether the shim of this attempt is alive or about to start. */
export function isRunning(folder: InstanceFolder): boolean {
  if (folder.settledExit()) return false;
  const shim = folder.shim();
  return shim ? isAlive(shim) && folder.writtenExit() === undefined : mayStillStart(folder);
}

// A start is cancelled after ten seconds; one that a crash interrupted is older than that or belongs to an earlier boot.
const startingMs = 15_000;

function mayStillStart({ record }: InstanceFolder): boolean {
  return record.boot_id === currentBoot() && Date.now() - Date.parse(record.started_at) < startingMs;
}

/** Returns how a stopped attempt ended, and records it permanently once the disk accepts it. Undefined while it is running. */
export function settleExit(folder: InstanceFolder, sandbox: Sandbox): InstanceExit | undefined {
  const known = folder.settledExit();
  if (known) return known;
  if (isRunning(folder)) return undefined;
  // The shim writes its exit code before it exits, so a code that is missing now will never come, unless the shim has yet to start.
  const mayStart = !folder.shim() && folder.record.boot_id === currentBoot();
  if (mayStart && !folder.giveUp()) return undefined;
  const written = folder.writtenExit();
  const wentDown = written === undefined && folder.record.boot_id !== currentBoot();
  // Without a PID namespace, an application can signal its own shim.
  const isStopped = wentDown || (folder.wasStopped() && hasPidNamespace(sandbox));
  const starved = folder.wasMarkedOutOfMemory() || sandbox.outOfMemory(folder.record.sandbox_id);
  const exit = {
    code: written?.code ?? null,
    out_of_memory: starved && written?.code !== 0,
    ...(isStopped ? { stopped: true as const } : {}),
    at: written?.at ?? new Date(),
  };
  folder.settle(exit);
  return exit;
}

export function toInstance(folder: InstanceFolder, exit: InstanceExit | undefined): Instance {
  const { workload_id, ordinal, attempt, project_id, image_ref, address, started_at } = folder.record;
  const output = statSync(join(folder.path, "output"), { throwIfNoEntry: false });
  const output_mark = `${output?.size ?? 0}:${output?.mtimeMs ?? 0}:${exit === undefined}`;
  const base = { workload_id, ordinal, attempt, project_id, image_ref, started_at: new Date(started_at), output_mark };
  return exit ? { ...base, state: "exited", address: null, exit } : { ...base, state: "running", address, exit: null };
}
