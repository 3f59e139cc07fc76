import { mkdirSync, rmSync, statSync, watch } from "node:fs";
import { join } from "node:path";
import { createFaultIsolation, type RunIsolated } from "../../kit/fault-isolation.ts";
import { silentLog } from "../../kit/log.ts";
import { applicationProcesses, readProcessTree, type ProcessTree } from "../../kit/process-tree.ts";
import { processIds } from "../../kit/processes.ts";
import { endOverFull } from "./changed-folders.ts";
import type { InstanceFolder } from "./instance-folder.ts";
import type { InstanceFolders } from "./instance-folders.ts";
import { isRunning, settleExit } from "./observe-instance.ts";
import { OutputFile } from "./output-file.ts";
import type { ProcessRuntimeOptions } from "./settings.ts";
import { namesIn } from "./state-files.ts";
import { hasPidNamespace, killInstance } from "./stop-instance.ts";

/**
 * Notices within a quarter of a second that an instance has stopped, and enforces the limits on output and memory. Idle instances cost next
 * to nothing: one listing of /proc shows missing shims, a shim that exits sends a signal, and each instance is checked individually only
 * every few seconds.
 */
export type InstanceWatch = ReturnType<typeof watchInstances>;

const lookMs = 250;
const memoryEveryLooks = 4;
const outputEveryLooks = 2;
// A shim whose parent does not reap it stays in /proc as a zombie, so each instance is also checked individually.
const closerEveryLooks = 20;
const folderEveryLooks = 60;
const defaultMaxOutputBytes = 32 * 1024 * 1024;

export function watchInstances(options: ProcessRuntimeOptions, folders: InstanceFolders) {
  const living = new Map<string, InstanceFolder>();
  const listeners = new Set<(workloadId: string) => void>();
  const log = options.log ?? silentLog;
  const notify = (workloadId: string) => listeners.forEach((listener) => listener(workloadId));
  // A full disk or one application's broken folder must not affect the control plane or other applications.
  const runIsolated = createFaultIsolation(log, "an application could not be watched");
  const look = (folder: InstanceFolder) => {
    if (isRunning(folder)) return;
    if (!settleExit(folder, options.sandbox)) return;
    living.delete(folder.path);
    notify(folder.record.workload_id);
  };
  const inspectInstances = (wanted: (folder: InstanceFolder, index: number) => boolean) => {
    for (const folder of [...living.values()].filter(wanted)) void runIsolated(folder.path, () => look(folder));
  };
  let looks = 0;
  let isLimiting = false;
  const tick = () => {
    looks += 1;
    const pids = new Set(processIds());
    const isGone = (folder: InstanceFolder) => !pids.has(folder.shim()?.pid ?? -1);
    inspectInstances((folder, index) => isGone(folder) || (looks + index) % closerEveryLooks === 0);
    if (isLimiting || looks % outputEveryLooks !== 0) return;
    isLimiting = true;
    const isDue = (everyLooks: number) => looks % everyLooks === 0;
    const due = { memory: isDue(memoryEveryLooks), folders: isDue(folderEveryLooks) };
    keepLimits(options, [...living.values()], { due, runIsolated })
      .catch((fault: unknown) => log.error({ fault: String(fault) }, "could not enforce the limits of applications"))
      .finally(() => (isLimiting = false));
  };
  let timer: NodeJS.Timeout | undefined;
  let endSignal: EndSignal | undefined;
  return {
    start() {
      for (const folder of folders.all())
        void runIsolated(folder.path, () => void (isRunning(folder) && living.set(folder.path, folder)));
      timer = setInterval(tick, lookMs).unref();
      endSignal = watchEnds(options.stateDir, (pid) => inspectInstances((folder) => folder.shim()?.pid === pid));
    },
    stop() {
      clearInterval(timer);
      endSignal?.close();
    },
    add: (folder: InstanceFolder) => living.set(folder.path, folder),
    seesRunning: (folder: InstanceFolder) =>
      living.has(folder.path) && folder.shim() !== undefined && !folder.settledExit(),
    listen(listener: (workloadId: string) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

async function keepLimits(
  options: ProcessRuntimeOptions,
  living: readonly InstanceFolder[],
  { due, runIsolated }: { readonly due: Record<"memory" | "folders", boolean>; readonly runIsolated: RunIsolated },
): Promise<void> {
  const maxBytes = options.maxOutputBytes ?? defaultMaxOutputBytes;
  for (const folder of living) {
    // A small file can't hold more output than the limit.
    if ((statSync(join(folder.path, "output"), { throwIfNoEntry: false })?.size ?? 0) <= maxBytes) continue;
    await runIsolated(join(folder.path, "output"), () => new OutputFile(folder.path).cap(maxBytes));
  }
  if (due.folders) await runIsolated("folders", () => endOverFull(options.sandbox, living));
  if (!due.memory || options.sandbox.describe().isolation.includes("memory_limit") || living.length === 0) return;
  const tree = readProcessTree();
  for (const folder of living)
    await runIsolated(join(folder.path, "memory"), () => endWhenOverMemory(options, folder, tree));
}

/** Enforces the memory limit where control groups can't. */
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
    // The limit also applies on a full disk; only the reason of the kill is then lost.
  }
  await killInstance(folder, sandbox, shim);
}

interface EndSignal {
  close(): void;
}

/**
 * Calls `onEnd` with the pid of each shim that exits. Shims write a file named after their pid to one folder (shim.sh), so that one inotify
 * watch serves all instances; where watching is impossible, polling notices exits.
 */
export function watchEnds(stateDir: string, onEnd: (pid: number) => void): EndSignal {
  const folder = join(stateDir, "ended");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const answer = () => {
    for (const name of namesIn(folder)) {
      rmSync(join(folder, name), { force: true });
      onEnd(Number(name));
    }
  };
  try {
    const watcher = watch(folder, { persistent: false }, answer).on("error", () => {});
    answer();
    return watcher;
  } catch {
    return { close() {} };
  }
}
