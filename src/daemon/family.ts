import { mkdirSync, readFileSync } from "node:fs";
import type { Log } from "../kit/log.ts";
import { openProjectQuota } from "../kit/project-quota.ts";
import { throwTogether } from "../kit/throw-together.ts";
import type { BuildRequest, Builder } from "../ports/builder.ts";
import type { MachinePool } from "../ports/machines.ts";
import type { Instance, InstanceKey, Runtime, RuntimeDescription, Workload } from "../ports/runtime.ts";
import type { Database } from "../store/database.ts";
import type { Wakeups } from "../store/wakeups.ts";
import { StartRefused, type Config } from "./config.ts";
import { findProgram } from "./setup/find-program.ts";
import type { MachineParts } from "./setup/machine.ts";

/**
 * Joins all runtimes of this machine into one. A workload runs in the runtime that its image was built for, or in the first one if the
 * image names none. Storage folders are common to all runtimes; the first one manages them. A member may have several names.
 */
export function joinRuntimes(members: readonly [Member, ...Member[]]): Runtime {
  return members.length === 1 ? members[0].runtime : new JoinedRuntime(members);
}

class JoinedRuntime implements Runtime {
  readonly machines: MachinePool | undefined;
  readonly #members: readonly [Member, ...Member[]];
  readonly #runtimes: readonly Runtime[];
  readonly #first: Runtime;
  readonly #owners = new Map<string, Runtime>();
  readonly #seen = new Map<Runtime, readonly Instance[]>();

  constructor(members: readonly [Member, ...Member[]]) {
    this.#members = members;
    this.#runtimes = [...new Set(members.map(({ runtime }) => runtime))];
    this.machines = this.#runtimes.find(({ machines }) => machines !== undefined)?.machines;
    this.#first = members[0].runtime;
  }

  async describe(): Promise<RuntimeDescription> {
    const all = await Promise.all(this.#runtimes.map((runtime) => runtime.describe()));
    const missing = all.flatMap((each) => each.missing);
    const [first, ...others] = all as [RuntimeDescription, ...RuntimeDescription[]];
    return {
      name: this.#members.map(({ name }) => name).join(","),
      network: first.network,
      isolation: first.isolation.filter((part) => others.every(({ isolation }) => isolation.includes(part))),
      missing: missing.filter(({ part }, index) => missing.findIndex((each) => each.part === part) === index),
    };
  }

  unavailable: Runtime["unavailable"] = async (name) => (this.#named(name) ?? this.#first).unavailable?.(name);

  async start(workload: Workload, ...more: [Parameters<Runtime["start"]>[1]]): Promise<Instance> {
    const runtime = this.#runtimeOf(workload);
    this.#owners.set(workload.id, runtime);
    return runtime.start(workload, ...more);
  }

  async observe(): Promise<readonly Instance[]> {
    const all = await Promise.all(this.#runtimes.map((runtime) => this.#observe(runtime)));
    return all.flat();
  }

  /** Returns what the runtime runs, or its last observation if its engine does not answer, so that other applications stay in sight. */
  async #observe(runtime: Runtime): Promise<readonly Instance[]> {
    try {
      const found = await runtime.observe();
      for (const { workload_id } of found) this.#owners.set(workload_id, runtime);
      this.#seen.set(runtime, found);
      return found;
    } catch (error) {
      const seen = this.#seen.get(runtime);
      if (seen === undefined) throw error;
      return seen;
    }
  }

  stop(workloadId: string, graceMs: number, ordinals?: readonly number[]): Promise<void> {
    return this.#each(workloadId, (runtime) => runtime.stop(workloadId, graceMs, ordinals));
  }

  async remove(workloadId: string, ordinals?: readonly number[]): Promise<void> {
    await this.#each(workloadId, (runtime) => runtime.remove(workloadId, ordinals));
    if (ordinals === undefined) this.#owners.delete(workloadId);
  }

  runOnce: Runtime["runOnce"] = (workload, task) => this.#runtimeOf(workload).runOnce(workload, task);

  readOutput: Runtime["readOutput"] = async (key, cursor) => (await this.#ownerOf(key)).readOutput(key, cursor);

  discardOutput: Runtime["discardOutput"] = async (key, cursor) =>
    (await this.#ownerOf(key)).discardOutput(key, cursor);

  checkHealth: Runtime["checkHealth"] = async (key) => (await this.#ownerOf(key)).checkHealth(key);

  onChange(listener: (workloadId: string) => void): () => void {
    const ends = this.#runtimes.map((runtime) => runtime.onChange(listener));
    return () => {
      for (const end of ends) end();
    };
  }

  endpointFor: Runtime["endpointFor"] = (server, name) => (this.#named(name) ?? this.#first).endpointFor(server);

  removeImage: Runtime["removeImage"] = async (image) => {
    for (const runtime of this.#runtimes) await runtime.removeImage(image);
  };

  listening: Runtime["listening"] = async (id) => (await this.#ownerOf({ workload_id: id })).listening(id);

  measure: Runtime["measure"] = async (id) => (await this.#ownerOf({ workload_id: id })).measure(id);

  async changedBytes(projectId: string): Promise<number> {
    const all = await Promise.all(this.#runtimes.map((runtime) => runtime.changedBytes(projectId)));
    return all.reduce((sum, bytes) => sum + bytes, 0);
  }

  hasStorage: Runtime["hasStorage"] = (project) => this.#first.hasStorage(project);

  storageBytes: Runtime["storageBytes"] = (project) => this.#first.storageBytes(project);

  limitStorage: Runtime["limitStorage"] = (project, bytes) => this.#first.limitStorage(project, bytes);

  readStorage: Runtime["readStorage"] = (project, signal) => this.#first.readStorage(project, signal);
  writeStorage: Runtime["writeStorage"] = (project, ...what) => this.#first.writeStorage(project, ...what);
  removeStorage: Runtime["removeStorage"] = (project) => this.#first.removeStorage(project);

  listStored: Runtime["listStored"] = (...what) => this.#first.listStored(...what);

  readStored: Runtime["readStored"] = (...what) => this.#first.readStored(...what);

  statStored: Runtime["statStored"] = (project, path) => this.#first.statStored(project, path);
  moveStored: Runtime["moveStored"] = (project, ...what) => this.#first.moveStored(project, ...what);
  removeStored: Runtime["removeStored"] = (project, path, signal) => this.#first.removeStored(project, path, signal);

  #runtimeOf({ runtime: name, image_ref }: Workload): Runtime {
    const found = this.#named(name);
    if (found === undefined)
      throw new Error(`the image ${image_ref} is for the runtime ${name}, which BERTH_RUNTIME lacks`);
    return found;
  }

  #named(name: string | undefined): Runtime | undefined {
    return name === undefined ? this.#first : this.#members.find((member) => member.name === name)?.runtime;
  }

  async #ownerOf({ workload_id }: Pick<InstanceKey, "workload_id">): Promise<Runtime> {
    // Nothing has been observed since the control plane started.
    if (!this.#owners.has(workload_id)) await this.observe();
    return this.#owners.get(workload_id) ?? this.#first;
  }

  async #each(workloadId: string, work: (runtime: Runtime) => Promise<void>): Promise<void> {
    const owner = this.#owners.get(workloadId);
    const asked = owner === undefined ? this.#runtimes : [owner];
    throwTogether(await Promise.allSettled(asked.map(work)));
  }
}

/** Returns the path of a program without which Berth can't run. Throws `StartRefused` if it is missing. */
export function requirePart(part: string | null, name: string): string {
  if (part === null) throw new StartRefused(`${name} was not found on this machine. Install it and start again.`);
  return part;
}

/** Returns the quotas of the storage folders' file system; null if it has none or Berth can't set them. */
export function storageQuota({ isRoot }: Config, storageDir: string) {
  mkdirSync(storageDir, { recursive: true, mode: 0o700 });
  const program = isRoot ? findProgram("xfs_quota", "") : null;
  return openProjectQuota(program, storageDir, readFileSync("/proc/self/mountinfo", "utf8"));
}

/** What exists before the platform is wired together. */
export interface Foundation {
  readonly config: Config;
  readonly parts: MachineParts;
  readonly database: Database;
  readonly wakeups: Wakeups;
  readonly log: Log;
}

/** Joins all builders of this machine into one. Each image records the runtime that it is for. Several runtimes may share a builder. */
export function joinBuilders(members: readonly [Member, ...Member[]]): Builder {
  const builders = [...new Set(members.map(({ builder }) => builder))];
  return {
    async build(request) {
      const { name, builder } = memberFor(members, request);
      const built = await builder.build(request);
      return built.outcome === "built" ? { ...built, image: { ...built.image, runtime: name } } : built;
    },
    plan: (request) => memberFor(members, request).builder.plan(request),
    images: async (id, only) => (await Promise.all(builders.map((builder) => builder.images(id, only)))).flat(),
    async adopt(image, to) {
      for (const builder of builders) {
        const adopted = await builder.adopt(image, to);
        if (adopted !== null) return adopted;
      }
      return null;
    },
    async diskBytes(id) {
      const all = await Promise.all(builders.map((builder) => builder.diskBytes(id)));
      return all.reduce((sum, bytes) => (sum === null || bytes === null ? null : sum + bytes), 0);
    },
    isShortOfSpace: async () => (await Promise.all(builders.map((builder) => builder.isShortOfSpace()))).includes(true),
    async takenBytes(id) {
      const all = await Promise.all(builders.map((builder) => builder.takenBytes(id)));
      return all.find((bytes) => bytes !== null) ?? null;
    },
    tryLogin: builders.find(({ tryLogin }) => tryLogin !== undefined)?.tryLogin,
    clearCaches: async (id) => void (await Promise.all(builders.map((builder) => builder.clearCaches(id)))),
  };
}

/** Returns the member for the requested runtime, or the first one if the platform has that no longer: the next push moves the project there. */
function memberFor(members: readonly [Member, ...Member[]], { runtime }: Pick<BuildRequest, "runtime">): Member {
  return members.find(({ name }) => name === runtime) ?? members[0];
}

export interface Family {
  readonly builder: Builder;
  readonly runtime: Runtime;
  /** Removes what both created on this machine. Call it only once no application runs. */
  readonly leave: () => Promise<void>;
}

export interface Member extends Pick<Family, "builder" | "runtime"> {
  readonly name: string;
}
