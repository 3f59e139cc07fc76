import {
  existsSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  writeFileSync,
  accessSync,
  constants,
  readFileSync,
} from "node:fs";
import { join, basename, dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { attempt } from "../kit/attempt.ts";
import type { Command } from "../kit/exec.ts";
import { readTextOrEmpty } from "../kit/whole-file.ts";
import type { SandboxBind, SandboxLimits, SandboxUsage } from "./spec.ts";
import { ownGroup, tenantGroup } from "../kit/tenant-group.ts";

/** Control groups of version 1, 2 or both: one group per sandbox, below `name`, in each hierarchy that Berth can write. */
export interface Cgroups {
  /** Which of `memory_limit`, `process_limit`, `cpu_limit`, `group_kill` work on this machine. */
  readonly parts: readonly string[];
  /** Creates the group of a sandbox. Returns the files to which a process writes 0 to join it. */
  open(id: string, limits: SandboxLimits | null): readonly string[];
  /** The binds that show a sandbox its own limits, so that Node sizes its heap by them. */
  visible(id: string): readonly SandboxBind[];
  usage(id: string): SandboxUsage | undefined;
  outOfMemory(id: string): boolean;
  /** Kills the group's members. Version 2 does so atomically; version 1 may miss a process that is being forked, so call it again. */
  kill(id: string): void;
  remove(id: string): Promise<void>;
  ids(): readonly string[];
  /** Removes the parent groups once they are empty. */
  dismantle(): void;
}

export function openCgroups(name: string): Cgroups {
  const hierarchies = findHierarchies().flatMap((hierarchy) => usable(hierarchy, name));
  return new WrittenCgroups(hierarchies);
}

/** Returns a command that joins the groups of `files` (from `open`), disables core dumps, then execs `command`. */
export function joinGroups(files: readonly string[], command: Command): Command {
  if (files.length === 0) return command;
  const script = join(import.meta.dirname, "enter.sh");
  return { file: "/bin/sh", args: [script, ...files, "--", command.file, ...command.args] };
}

type Controller = "memory" | "pids" | "cpu" | "cpuacct";
interface Hierarchy {
  readonly version: 1 | 2;
  readonly root: string;
  readonly controllers: readonly Controller[];
}

const wanted: readonly Controller[] = ["memory", "pids", "cpu", "cpuacct"];
const isWanted = (text: string): text is Controller => (wanted as readonly string[]).includes(text);
const probeLimits: SandboxLimits = { memoryBytes: 64 * 1024 * 1024, processes: 16, cpus: 1 };
const quotaPeriodUs = 100_000;

function findHierarchies(): Hierarchy[] {
  const found: Hierarchy[] = [];
  for (const line of readTextOrEmpty("/proc/self/mounts").split("\n")) {
    const [, root = "", type, options = ""] = line.split(" ");
    if (type === "cgroup") found.push({ version: 1, root, controllers: options.split(",").filter(isWanted) });
    // A machine may mount version 2 without controllers beside version 1, so only those listed in cgroup.controllers count.
    if (type === "cgroup2")
      found.push({
        version: 2,
        root,
        controllers: controllersIn(root),
      });
  }
  return found.filter((hierarchy) => hierarchy.version === 2 || hierarchy.controllers.length > 0);
}

/** Returns the groups of `name` in the first place of the hierarchy where Berth can create groups with limits; empty if there is none. */
function usable(hierarchy: Hierarchy, name: string): Hierarchy[] {
  const places =
    hierarchy.version === 1
      ? [hierarchy]
      : groupPlaces(hierarchy.root).map((place) => ({
          ...hierarchy,
          root: place.folder,
          controllers: controllersIn(place.folder),
          vacate: place.vacate,
        }));
  for (const place of places) {
    const found = usableIn(place, name);
    if (found.length > 0) return found;
  }
  return [];
}

function usableIn(hierarchy: Hierarchy & { readonly vacate?: () => void }, name: string): Hierarchy[] {
  const { version, controllers } = hierarchy;
  if (controllers.length === 0) return [];
  const own: Hierarchy = { version, controllers, root: join(hierarchy.root, name) };
  const probe = join(own.root, `probe-${process.pid}-${probeCount++}`);
  try {
    hierarchy.vacate?.();
    if (hierarchy.version === 2) delegate(hierarchy.root, hierarchy.controllers);
    mkdirSync(own.root, { recursive: true });
    if (hierarchy.version === 2) delegate(own.root, hierarchy.controllers);
    mkdirSync(probe);
    for (const [file, value] of limitFiles(own, probeLimits)) writeFileSync(join(probe, file), value);
    return [own];
  } catch {
    return [];
  } finally {
    tryRemove(probe);
  }
}
let probeCount = 0;

function controllersIn(folder: string): readonly Controller[] {
  return readTextOrEmpty(join(folder, "cgroup.controllers")).trim().split(" ").filter(isWanted);
}

function delegate(folder: string, controllers: readonly Controller[]): void {
  const names = controllers.filter((name) => name !== "cpuacct");
  if (names.length > 0)
    writeFileSync(join(folder, "cgroup.subtree_control"), names.map((name) => `+${name}`).join(" "));
}

/** cgroups(7); kernel: Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst. */
function limitFiles(hierarchy: Hierarchy, limits: SandboxLimits): [string, string][] {
  const has = (controller: Controller) => hierarchy.controllers.includes(controller);
  const memory = String(limits.memoryBytes);
  const quota = String(Math.max(1000, Math.round(limits.cpus * quotaPeriodUs)));
  const files: [string, string][] = [];
  if (hierarchy.version === 1) {
    if (has("memory")) files.push(["memory.limit_in_bytes", memory]);
    if (has("cpu")) files.push(["cpu.cfs_period_us", String(quotaPeriodUs)], ["cpu.cfs_quota_us", quota]);
  } else {
    if (has("memory")) files.push(["memory.max", memory]);
    if (has("cpu")) files.push(["cpu.max", `${quota} ${quotaPeriodUs}`]);
  }
  if (has("pids")) files.push(["pids.max", String(limits.processes)]);
  return files;
}

/** Counts swap as memory if the kernel accounts for swap; otherwise these files don't exist. */
function noSwap(hierarchy: Hierarchy, limits: SandboxLimits): [string, string][] {
  if (!hierarchy.controllers.includes("memory")) return [];
  return hierarchy.version === 1
    ? [["memory.memsw.limit_in_bytes", String(limits.memoryBytes)]]
    : [["memory.swap.max", "0"]];
}

class WrittenCgroups implements Cgroups {
  readonly parts: readonly string[];
  readonly #hierarchies: readonly Hierarchy[];

  constructor(hierarchies: readonly Hierarchy[]) {
    this.#hierarchies = hierarchies;
    const has = (controller: Controller) => hierarchies.some((hierarchy) => hierarchy.controllers.includes(controller));
    const kill = hierarchies.some((hierarchy) => hierarchy.version === 2);
    const parts = { memory_limit: has("memory"), process_limit: has("pids"), cpu_limit: has("cpu"), group_kill: kill };
    this.parts = Object.entries(parts).flatMap(([part, works]) => (works ? [part] : []));
  }

  open(id: string, limits: SandboxLimits | null): readonly string[] {
    return this.#hierarchies.map((hierarchy) => {
      const folder = join(hierarchy.root, id);
      mkdirSync(folder, { recursive: true });
      if (limits) {
        // Version 1 requires memory.memsw to be at least memory at every moment, whether a limit rises or falls.
        for (const [file, value] of noSwap(hierarchy, limits)) tryWrite(join(folder, file), value);
        for (const [file, value] of limitFiles(hierarchy, limits)) writeFileSync(join(folder, file), value);
        for (const [file, value] of noSwap(hierarchy, limits)) tryWrite(join(folder, file), value);
      }
      return join(folder, "cgroup.procs");
    });
  }

  visible(id: string): readonly SandboxBind[] {
    const memory = this.#with("memory");
    if (!memory) return [];
    const target = memory.version === 2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    return [{ source: join(memory.root, id), target, writable: false }];
  }

  usage(id: string): SandboxUsage | undefined {
    const memory = this.#with("memory");
    const pids = this.#with("pids");
    if (!memory || !pids || !existsSync(join(memory.root, id))) return undefined;
    return {
      memoryBytes: usedMemory(memory.version, join(memory.root, id)),
      cpuSeconds: this.#cpuSeconds(id),
      processes: Number(readTextOrEmpty(join(pids.root, id, "pids.current"))),
    };
  }

  outOfMemory(id: string): boolean {
    const memory = this.#with("memory");
    if (!memory) return false;
    const file = memory.version === 1 ? "memory.oom_control" : "memory.events";
    return field(readTextOrEmpty(join(memory.root, id, file)), "oom_kill") > 0;
  }

  kill(id: string): void {
    const atOnce = this.#hierarchies.some(
      (hierarchy) => hierarchy.version === 2 && tryWrite(join(hierarchy.root, id, "cgroup.kill"), "1"),
    );
    if (!atOnce) this.#killMembers(id);
  }

  async remove(id: string): Promise<void> {
    // A group can't be removed before its last process is reaped, which takes a moment after a kill.
    for (let attempt = 0; attempt < 50; attempt += 1) {
      if (this.#hierarchies.map((hierarchy) => tryRemoveTree(join(hierarchy.root, id))).every(Boolean)) return;
      this.kill(id);
      await sleep(20);
    }
  }

  ids(): readonly string[] {
    const names = this.#hierarchies.flatMap((hierarchy) => readdirSync(hierarchy.root, { withFileTypes: true }));
    return [...new Set(names.filter((entry) => entry.isDirectory()).map((entry) => entry.name))];
  }

  dismantle(): void {
    for (const hierarchy of this.#hierarchies) tryRemove(hierarchy.root);
  }

  #with(controller: Controller): Hierarchy | undefined {
    return this.#hierarchies.find((hierarchy) => hierarchy.controllers.includes(controller));
  }

  #cpuSeconds(id: string): number {
    const old = this.#with("cpuacct");
    if (old) return Number(readTextOrEmpty(join(old.root, id, "cpuacct.usage"))) / 1e9;
    const cpu = this.#with("cpu");
    return cpu ? field(readTextOrEmpty(join(cpu.root, id, "cpu.stat")), "usage_usec") / 1e6 : 0;
  }

  #killMembers(id: string): void {
    for (const hierarchy of this.#hierarchies) killIn(join(hierarchy.root, id));
  }
}

/** Excludes the page cache, which the kernel reclaims before it kills a process. */
function usedMemory(version: 1 | 2, folder: string): number {
  const stat = readTextOrEmpty(join(folder, "memory.stat"));
  if (version === 1) return field(stat, "total_rss") + field(stat, "total_shmem");
  return field(stat, "anon") + field(stat, "shmem");
}

function field(text: string, name: string): number {
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.slice(name.length + 1));
}

function tryWrite(path: string, value: string): boolean {
  try {
    if (!existsSync(path)) return false;
    writeFileSync(path, value);
    return true;
  } catch {
    return false;
  }
}

function tryRemove(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return !existsSync(folder);
  }
}

/** Also removes the groups that a container engine created below it. */
function tryRemoveTree(folder: string): boolean {
  if (tryRemove(folder)) return true;
  for (const name of foldersIn(folder)) tryRemoveTree(join(folder, name));
  return tryRemove(folder);
}

function foldersIn(folder: string): string[] {
  return attempt(
    () => readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])),
    [],
  );
}

function killIn(folder: string): void {
  for (const pid of readTextOrEmpty(join(folder, "cgroup.procs")).split("\n")) if (pid !== "") tryKill(Number(pid));
  for (const name of foldersIn(folder)) killIn(join(folder, name));
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // The process has exited in the meantime.
  }
}

/** A control group below which Berth may create its own. */
interface GroupPlace {
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
