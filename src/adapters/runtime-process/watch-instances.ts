import { join } from "node:path";
import { createFaultIsolation, type RunIsolated } from "../../kit/fault-isolation.ts";
import { silentLog } from "../../kit/log.ts";
import type { InstanceFolder } from "./instance-folder.ts";
import type { InstanceFolders } from "./instance-folders.ts";
import { isRunning, settleExit } from "./observe-instance.ts";
import { OutputFile } from "./output-file.ts";
import { applicationProcesses, readProcessTree, type ProcessTree } from "./process-tree.ts";
import type { ProcessRuntimeOptions } from "./settings.ts";
import { hasPidNamespace, killInstance } from "./stop-instance.ts";

/** Probes living instances four times a second for their end and for the size of their output, and once a second for their memory. */
export interface InstanceWatch {
  start(): void;
  stop(): void;
  add(folder: InstanceFolder): void;
  listen(listener: (workloadId: string) => void): () => void;
}

const lookMs = 250;
const memoryEveryLooks = 4;
const defaultMaxOutputBytes = 32 * 1024 * 1024;

/** Watches what runs in these folders. */
export function watchInstances(options: ProcessRuntimeOptions, folders: InstanceFolders): InstanceWatch {
  const living = new Map<string, InstanceFolder>();
  const listeners = new Set<(workloadId: string) => void>();
  const log = options.log ?? silentLog;
  const notify = (workloadId: string) => listeners.forEach((listener) => listener(workloadId));
  // Also when the disk is full, and when one application's folder is broken, the control plane and the other applications go on.
  const runIsolated = createFaultIsolation(log, "an application could not be watched");
  const look = (folder: InstanceFolder) => {
    if (isRunning(folder)) return;
    if (!settleExit(folder, options.sandbox)) return;
    living.delete(folder.path);
    notify(folder.record.workload_id);
  };
  let looks = 0;
  let isLimiting = false;
  const tick = () => {
    for (const folder of [...living.values()]) void runIsolated(folder.path, () => look(folder));
    looks += 1;
    if (isLimiting) return;
    isLimiting = true;
    keepLimits(options, [...living.values()], { withMemory: looks % memoryEveryLooks === 0, runIsolated })
      .catch((fault: unknown) => log.error({ fault: String(fault) }, "the limits of applications could not be kept"))
      .finally(() => (isLimiting = false));
  };
  let timer: NodeJS.Timeout | undefined;
  return {
    start() {
      for (const folder of folders.all())
        void runIsolated(folder.path, () => void (isRunning(folder) && living.set(folder.path, folder)));
      timer = setInterval(tick, lookMs).unref();
    },
    stop: () => clearInterval(timer),
    add: (folder) => living.set(folder.path, folder),
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

async function keepLimits(
  options: ProcessRuntimeOptions,
  living: readonly InstanceFolder[],
  { withMemory, runIsolated }: { readonly withMemory: boolean; readonly runIsolated: RunIsolated },
): Promise<void> {
  const maxBytes = options.maxOutputBytes ?? defaultMaxOutputBytes;
  for (const folder of living)
    await runIsolated(join(folder.path, "output"), () => new OutputFile(folder.path).cap(maxBytes));
  if (!withMemory || options.sandbox.describe().isolation.includes("memory_limit") || living.length === 0) return;
  const tree = readProcessTree();
  for (const folder of living)
    await runIsolated(join(folder.path, "memory"), () => endWhenOverMemory(options, folder, tree));
}

/** What control groups do where they can be written. */
async function endWhenOverMemory(
  { sandbox }: ProcessRuntimeOptions,
  folder: InstanceFolder,
  tree: ProcessTree,
): Promise<void> {
  const shim = folder.shim();
  if (!shim) return;
  const processes = applicationProcesses(tree, { pid: shim.pid, hasPidNamespace: hasPidNamespace(sandbox) });
  if (processes.reduce((sum, process) => sum + process.rssBytes, 0) <= folder.record.limits.memoryBytes) return;
  try {
    folder.markOutOfMemory();
  } catch {
    // The limit holds on a full disk too; only the reason of the end is not known then.
  }
  await killInstance(folder, sandbox, shim);
}
