import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** The control group for what outlives the control plane; undefined when this process is not the service, or the unit does not run. */
export function tenantGroup(folder = ownGroup()?.folder): string | undefined {
  if (folder === undefined || basename(folder) !== unitNames.controlPlane) return undefined;
  const beside = join(dirname(folder), unitNames.tenants);
  return existsSync(beside) ? beside : undefined;
}

/** The systemd unit of the control plane, and the one beside it whose control group holds everything that outlives the control plane. */
export const unitNames = { controlPlane: "berth.service", tenants: "berth-tenants.service" } as const;

export interface OwnGroup {
  readonly root: string;
  readonly folder: string;
}

/** Where the hierarchy of cgroup v2 is mounted, and this process's group in it; undefined on machines without one. */
export function ownGroup(
  mounts = readText("/proc/self/mounts"),
  groups = readText("/proc/self/cgroup"),
): OwnGroup | undefined {
  return groupIn(mounts, ([, , type]) => type === "cgroup2", /^0::(\/.*)$/m.exec(groups));
}

/** The same of the hierarchy in which systemd keeps its services on machines with cgroup v1 (systemd's "legacy" and "hybrid" set-ups). */
export function ownLegacyGroup(
  mounts = readText("/proc/self/mounts"),
  groups = readText("/proc/self/cgroup"),
): OwnGroup | undefined {
  const isSystemd = ([, , type, options]: readonly string[]) =>
    type === "cgroup" && (options ?? "").split(",").includes("name=systemd");
  return groupIn(mounts, isSystemd, /^\d+:name=systemd:(\/.*)$/m.exec(groups));
}

function groupIn(
  mounts: string,
  isWanted: (fields: readonly string[]) => boolean,
  path: RegExpExecArray | null,
): OwnGroup | undefined {
  const root = mounts
    .split("\n")
    .map((line) => line.split(" "))
    .find(isWanted)?.[1];
  return root === undefined || path === null ? undefined : { root, folder: join(root, path[1] ?? "") };
}

/** The file that a process writes 0 to before it becomes a program that outlives the control plane; undefined where it need not. */
export function companionsFile(): string | undefined {
  const tenants = tenantGroup() ?? tenantGroup(ownLegacyGroup()?.folder);
  if (tenants === undefined) return undefined;
  // A group whose children have limits may hold no processes itself.
  const folder = join(tenants, "companions");
  mkdirSync(folder, { recursive: true });
  return join(folder, "cgroup.procs");
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
