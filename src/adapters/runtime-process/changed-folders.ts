import { appendFileSync } from "node:fs";
import { join } from "node:path";
import type { Sandbox } from "../../sandbox/spec.ts";
import type { InstanceFolder } from "./instance-folder.ts";
import { applicationProcesses, readProcessTree } from "../../kit/process-tree.ts";
import { hasPidNamespace, killInstance } from "./stop-instance.ts";

export interface ChangedFolder {
  readonly folder: InstanceFolder;
  /** Disk space used by the application's changes to its own folder. */
  readonly bytes: number;
  readonly isOver: boolean;
}

/** Measures the changes of running instances; skips those that are just starting. */
export async function measureChanges(
  sandbox: Sandbox,
  running: readonly InstanceFolder[],
): Promise<readonly ChangedFolder[]> {
  if (running.length === 0) return [];
  const tree = readProcessTree();
  const changed: ChangedFolder[] = [];
  for (const folder of running) {
    const pid = folder.shim()?.pid;
    if (pid === undefined) continue;
    const [main] = applicationProcesses(tree, { pid, hasPidNamespace: hasPidNamespace(sandbox) });
    if (main) changed.push({ folder, ...(await sandbox.changes(folder.record.sandbox_id, main.pid)) });
  }
  return changed;
}

const sentence = "[ended: the application wrote more to its own folder than it may; $STORAGE_DIR is for what lasts]\n";

/** Kills instances whose folder exceeds its limit. Needed only without namespaces, where the folder is a copy that nothing else limits. */
export async function endOverFull(sandbox: Sandbox, running: readonly InstanceFolder[]): Promise<void> {
  if (hasPidNamespace(sandbox)) return;
  for (const { folder, isOver } of await measureChanges(sandbox, running)) {
    const shim = folder.shim();
    if (!isOver || shim === undefined) continue;
    appendFileSync(join(folder.path, "output"), sentence);
    await killInstance(folder, sandbox, shim);
  }
}
