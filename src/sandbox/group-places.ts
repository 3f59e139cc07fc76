import { accessSync, constants, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ownGroup, tenantGroup } from "../kit/tenant-group.ts";

/** A control group below which Berth may create its own. */
export interface GroupPlace {
  readonly folder: string;
  /** Moves the group's processes into a leaf: on cgroup v2, a group whose children have limits must hold no processes. */
  readonly vacate?: () => void;
}

const leaf = "control-plane";

/**
 * Returns where Berth may create groups in a cgroup v2 hierarchy, best place first: the delegated group beside the service's; then, for
 * root, the root of the hierarchy, for an ordinary user the group that systemd delegated to this process.
 */
export function groupPlaces(root: string, own = ownGroup(), isRoot = process.getuid?.() === 0): readonly GroupPlace[] {
  const tenants = own?.root === root ? tenantGroup(own.folder) : undefined;
  const beside = tenants === undefined ? [] : [{ folder: tenants }];
  if (isRoot || own?.root !== root) return [...beside, { folder: root }];
  const folder = basename(own.folder) === leaf ? dirname(own.folder) : own.folder;
  return isWritable(folder) ? [...beside, { folder, vacate: () => vacate(folder) }] : beside;
}

/** Moves this process, its ancestors and descendants into the leaf. Throws if others are in the group: then it is not Berth's. */
function vacate(folder: string): void {
  const members = readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  const line = ancestors(process.pid);
  const isOfOurs = (pid: number) => line.includes(pid) || ancestors(pid).includes(process.pid);
  if (!members.every(isOfOurs)) throw new Error("other processes are in the group");
  mkdirSync(join(folder, leaf), { recursive: true });
  for (const pid of members) writeFileSync(join(folder, leaf, "cgroup.procs"), String(pid));
}

function ancestors(pid: number): readonly number[] {
  if (pid <= 1) return [];
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The process name, in parentheses, may contain any character, including `)`.
    const [, parent = "0"] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return [pid, ...ancestors(Number(parent))];
  } catch {
    return [];
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    accessSync(join(folder, "cgroup.procs"), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
