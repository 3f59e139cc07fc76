import { statSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../kit/processes.ts";
import type { Sandbox } from "../../sandbox/spec.ts";
import type { Instance, InstanceExit } from "../../ports/runtime.ts";
import { currentBoot, type InstanceFolder } from "./instance-folder.ts";

/** Whether the shim of this very attempt lives, or is about to. */
export function isRunning(folder: InstanceFolder): boolean {
  if (folder.settledExit()) return false;
  const shim = folder.shim();
  return shim ? isAlive(shim) && folder.writtenExit() === undefined : mayStillStart(folder);
}

// A start is given up after ten seconds; one that a crash interrupted is older than that or of another boot.
const startingMs = 15_000;

function mayStillStart({ record }: InstanceFolder): boolean {
  return record.boot_id === currentBoot() && Date.now() - Date.parse(record.started_at) < startingMs;
}

/** How an attempt that runs no more ended, written down for good as soon as the disk takes it. Undefined while it runs. */
export function settleExit(folder: InstanceFolder, sandbox: Sandbox): InstanceExit | undefined {
  const known = folder.settledExit();
  if (known) return known;
  if (isRunning(folder)) return undefined;
  // The shim writes its exit before it ends, so an exit that is missing now will never come, unless it never started.
  const mayStart = !folder.shim() && folder.record.boot_id === currentBoot();
  if (mayStart && !folder.giveUp()) return undefined;
  const written = folder.writtenExit();
  const starved = folder.wasMarkedOutOfMemory() || sandbox.outOfMemory(folder.record.sandbox_id);
  const exit = {
    code: written?.code ?? null,
    out_of_memory: starved && written?.code !== 0,
    at: written?.at ?? new Date(),
  };
  folder.settle(exit);
  return exit;
}

/** The port's view of an attempt. */
export function toInstance(folder: InstanceFolder, exit: InstanceExit | undefined): Instance {
  const { workload_id, ordinal, attempt, project_id, image_ref, address, started_at } = folder.record;
  const output = statSync(join(folder.path, "output"), { throwIfNoEntry: false });
  const output_mark = `${output?.size ?? 0}:${output?.mtimeMs ?? 0}:${exit === undefined}`;
  const base = { workload_id, ordinal, attempt, project_id, image_ref, started_at: new Date(started_at), output_mark };
  return exit ? { ...base, state: "exited", address: null, exit } : { ...base, state: "running", address, exit: null };
}
