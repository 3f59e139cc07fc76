import { existsSync, mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { readTextOrEmpty } from "./whole-file.ts";

/** Returns the control group for processes that outlive the control plane; undefined outside the service. */
export function tenantGroup(folder = ownGroup()?.folder): string | undefined {
  if (folder === undefined || basename(folder) !== unitNames.controlPlane) return undefined;
  const beside = join(dirname(folder), unitNames.tenants);
  return existsSync(beside) ? beside : undefined;
}

/** The control plane's systemd unit, and the second unit whose control group holds every process that outlives the control plane. */
export const unitNames = { controlPlane: "berth.service", tenants: "berth-tenants.service" } as const;

export interface OwnGroup {
  readonly root: string;
  readonly folder: string;
}

/** Returns the mount point of the cgroup v2 hierarchy and this process's group in it; undefined on machines without one. */
export function ownGroup(
  mounts = readTextOrEmpty("/proc/self/mounts"),
  groups = readTextOrEmpty("/proc/self/cgroup"),
): OwnGroup | undefined {
  return groupIn(mounts, ([, , type]) => type === "cgroup2", /^0::(\/.*)$/m.exec(groups));
}

/** Like `ownGroup`, for the hierarchy in which systemd keeps its services on machines with cgroup v1 (systemd's "legacy" and "hybrid" set-ups). */
export function ownLegacyGroup(
  mounts = readTextOrEmpty("/proc/self/mounts"),
  groups = readTextOrEmpty("/proc/self/cgroup"),
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

/** Returns the file to which a process that outlives the control plane writes 0 before it executes; undefined when unnecessary. */
export function companionsFile(): string | undefined {
  const tenants = tenantGroup() ?? tenantGroup(ownLegacyGroup()?.folder);
  if (tenants === undefined) return undefined;
  // A group whose child groups have limits must not hold processes itself.
  const folder = join(tenants, "companions");
  mkdirSync(folder, { recursive: true });
  return join(folder, "cgroup.procs");
}
