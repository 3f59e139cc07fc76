import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import type { Readable } from "node:stream";
import { missing, movedBy, moving, removedBy, removing, type Ended } from "../../kit/move-below.ts";
import { startDetached, type Command, type ExecResult, type RunOptions } from "../../kit/exec.ts";
import { createFaultIsolation } from "../../kit/fault-isolation.ts";
import { noFolder, requireUnpacked, unpacking } from "../../kit/folder-tar.ts";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { listeningPorts } from "../../kit/listening-ports.ts";
import { silentLog } from "../../kit/log.ts";
import { applicationProcesses, readProcessTree } from "../../kit/process-tree.ts";
import { forwardedAddress, forwardedSockets } from "../../kit/server-address.ts";
import { StorageFolders } from "../../kit/storage-folder.ts";
import type {
  Instance,
  InstanceKey,
  InstanceUsage,
  ListeningPort,
  MissingPart,
  OutputChunk,
  OwnCheck,
  ProjectImage,
  ReplicaStart,
  Runtime,
  StorageOwner,
  Workload,
} from "../../ports/runtime.ts";
import { measureChanges } from "./changed-folders.ts";
import { type InstanceFolder, currentBoot, type InstanceRecord } from "./instance-folder.ts";
import { InstanceFolders } from "./instance-folders.ts";
import { isRunning, settleExit, toInstance } from "./observe-instance.ts";
import { OutputFile } from "./output-file.ts";
import { removeRelease } from "./release.ts";
import { runOnce } from "./run-once.ts";
import { makeStorage, uidOf, type ProcessRuntimeOptions, sandboxSpec, shellWords } from "./settings.ts";
import { hasPidNamespace, stopInstance } from "./stop-instance.ts";
import { watchInstances, type InstanceWatch } from "./watch-instances.ts";
import { join } from "node:path";
import { until } from "../../kit/until.ts";
import type { SandboxCommand } from "../../sandbox/spec.ts";

export interface ProcessRuntime extends Runtime {
  /** Stops watching; the instances keep running. */
  close(): void;
}

/**
 * Creates the runtime for a machine without a container engine: an instance is a sandboxed process below a shim that outlives this process.
 * Adopts what an earlier process of Berth started here. Only one process of Berth at a time may use the folder.
 */
export async function createProcessRuntime(options: ProcessRuntimeOptions): Promise<ProcessRuntime> {
  const folders = new InstanceFolders(options.stateDir);
  const watch = watchInstances(options, folders);
  const runtime = new SandboxedProcesses(options, folders, watch);
  await runtime.adopt();
  watch.start();
  return runtime;
}

class SandboxedProcesses extends StorageFolders implements ProcessRuntime {
  readonly #options: ProcessRuntimeOptions;
  readonly #folders: InstanceFolders;
  readonly #watch: InstanceWatch;
  // Runs one action at a time for each replica.
  readonly #runExclusive = createKeyedMutex();

  constructor(options: ProcessRuntimeOptions, folders: InstanceFolders, watch: InstanceWatch) {
    super(options);
    this.#options = options;
    this.#folders = folders;
    this.#watch = watch;
  }

  /** Settles instances that stopped while no control plane was running, and removes sandboxes that a crash left without a record. */
  async adopt(): Promise<void> {
    const log = this.#options.log ?? silentLog;
    const kept: string[] = [];
    let isComplete = true;
    const runIsolated = createFaultIsolation(log, "an application could not be adopted");
    for (const workloadId of this.#folders.workloads())
      if (!(await runIsolated(workloadId, () => this.#adoptWorkload(workloadId, kept)))) isComplete = false;
    // An unreadable workload may still use its sandboxes, so sweep only if all were read.
    const left = isComplete ? await this.#options.sandbox.sweep("run", kept) : [];
    if (left.length > 0) log.warn({ sandboxes: left }, "could not remove what a crash left of applications");
    log.info({ adopted: this.#folders.all().filter(isRunning).length }, "adopted running applications");
  }

  #adoptWorkload(workloadId: string, kept: string[]): void {
    const latest = this.#folders.latest(workloadId);
    // A crash between two steps left the folder.
    if (latest.length === 0) this.#folders.forget(workloadId);
    for (const folder of latest) settleExit(folder, this.#options.sandbox);
    kept.push(...latest.map(({ record }) => record.sandbox_id));
  }

  async describe() {
    const { network, isolation, missing } = this.#options.sandbox.describe();
    return { name: "process", network, isolation, missing: missing satisfies readonly MissingPart[] };
  }

  start(workload: Workload, replica: ReplicaStart): Promise<Instance> {
    return this.#runExclusive(`${workload.id}/${replica.ordinal}`, async () => {
      const latest = this.#folders.latestOf(workload.id, replica.ordinal);
      if (latest !== undefined && latest.record.attempt >= replica.attempt) return this.#toInstance(latest);
      if (latest !== undefined) await this.#end(latest);
      const folder = this.#folders.keep(await startInstance(this.#options, this.#folders, workload, replica));
      this.#watch.add(folder);
      return this.#toInstance(folder);
    });
  }

  async observe(): Promise<readonly Instance[]> {
    return this.#folders.all().map((folder) => this.#toInstance(folder));
  }

  /** An instance whose exit can't be read now counts as running until it can be read: if it counted as missing, it would be started twice. */
  #toInstance(folder: InstanceFolder): Instance {
    if (this.#watch.seesRunning(folder)) return toInstance(folder, undefined);
    try {
      return toInstance(folder, settleExit(folder, this.#options.sandbox));
    } catch {
      return toInstance(folder, undefined);
    }
  }

  stop(workloadId: string, graceMs: number, ordinals?: readonly number[]): Promise<void> {
    return this.#each(workloadId, ordinals, async (folder) => {
      await stopInstance(folder, this.#options.sandbox, graceMs);
      settleExit(folder, this.#options.sandbox);
    });
  }

  async remove(workloadId: string, ordinals?: readonly number[]): Promise<void> {
    await this.#each(workloadId, ordinals, (folder) => this.#end(folder));
    this.#folders.forget(workloadId, ordinals);
  }

  #each(workloadId: string, ordinals: readonly number[] | undefined, work: (folder: InstanceFolder) => Promise<void>) {
    const works = this.#folders.latest(workloadId, ordinals).map(({ record: { ordinal } }) =>
      this.#runExclusive(`${workloadId}/${ordinal}`, async () => {
        const folder = this.#folders.latestOf(workloadId, ordinal);
        if (folder !== undefined) await work(folder);
      }),
    );
    return allOrFirstFault(works);
  }

  runOnce: Runtime["runOnce"] = (workload, task) => runOnce(this.#options, workload, task);

  async readOutput(key: InstanceKey, cursor: string | null): Promise<OutputChunk> {
    const folder = this.#folders.find(key);
    if (folder === undefined) return { lines: [], cursor: cursor ?? "0", dropped_bytes: 0 };
    return new OutputFile(folder.path).read(cursor, !isRunning(folder));
  }

  endpointFor = forwardedAddress;

  async discardOutput(key: InstanceKey, cursor: string): Promise<void> {
    const folder = this.#folders.find(key);
    if (folder !== undefined) await new OutputFile(folder.path).discard(cursor);
  }

  onChange(listener: (workloadId: string) => void): () => void {
    return this.#watch.listen(listener);
  }

  async removeImage(image: ProjectImage): Promise<void> {
    const user = this.#folders
      .all()
      .find(
        (folder) =>
          folder.record.image_ref === image.image_ref &&
          folder.record.project_id === image.project_id &&
          isRunning(folder),
      );
    if (user) throw new Error(`the image is in use by ${user.record.workload_id}`);
    removeRelease(this.#options.releasesDir, image);
  }

  async measure(workloadId: string): Promise<readonly InstanceUsage[]> {
    const running = this.#folders.latest(workloadId).filter((folder) => this.#watch.seesRunning(folder));
    return running.flatMap((folder) => this.#usage(folder) ?? []);
  }

  async listening(workloadId: string): Promise<readonly ListeningPort[]> {
    const place = { hasPidNamespace: hasPidNamespace(this.#options.sandbox) };
    const shims = this.#folders
      .latest(workloadId)
      .flatMap((folder) => (isRunning(folder) ? (folder.shim() ?? []) : []));
    const tree = readProcessTree();
    const processes = shims.flatMap(({ pid }) => applicationProcesses(tree, { pid, ...place }));
    return listeningPorts(processes.map(({ pid }) => pid));
  }

  /** Unpacks in the same sandbox as `removeStored`, for the same reason. */
  async writeStorage(owner: StorageOwner, name: string | null, archive: Readable, signal: AbortSignal): Promise<void> {
    if (name === null) makeStorage(this.#options, owner, uidOf(this.#options, owner));
    if (!existsSync(this.storageFolder(owner))) throw noFolder();
    const command = unpacking(name);
    requireUnpacked(await runInStorage(this.#options, owner, command, { stdin: archive, signal }), archive, signal);
  }

  /** A release folder has no health check of its own. */
  async checkHealth(): Promise<OwnCheck> {
    return { outcome: "none" };
  }

  async changedBytes(projectId: string): Promise<number> {
    const own = this.#folders.all().filter(({ record }) => record.project_id === projectId);
    const changed = await measureChanges(
      this.#options.sandbox,
      own.filter((folder) => this.#watch.seesRunning(folder)),
    );
    return changed.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  moveStored: Runtime["moveStored"] = async (project, move, signal) =>
    movedBy(await this.#change(project, moving(move), signal), move);

  removeStored: Runtime["removeStored"] = async (project, path, signal) =>
    removedBy(await this.#change(project, removing(path), signal));

  /** Runs it in a sandbox that sees nothing else: links that the project's code made may point anywhere. */
  async #change(project: StorageOwner, command: Command, signal: AbortSignal): Promise<Ended> {
    if (!existsSync(this.storageFolder(project))) return missing;
    const ended = await runInStorage(this.#options, project, command, { timeoutMs: 120_000, signal });
    signal.throwIfAborted();
    return ended;
  }

  close(): void {
    this.#watch.stop();
  }

  async #end(folder: InstanceFolder): Promise<void> {
    await stopInstance(folder, this.#options.sandbox, 0);
    settleExit(folder, this.#options.sandbox);
    await this.#options.sandbox.remove(folder.record.sandbox_id);
  }

  #usage(folder: InstanceFolder): InstanceUsage | undefined {
    const { workload_id, ordinal, attempt, sandbox_id } = folder.record;
    const counted = this.#options.sandbox.usage(sandbox_id) ?? addUp(folder, hasPidNamespace(this.#options.sandbox));
    if (!counted) return undefined;
    const { memoryBytes, cpuSeconds, processes } = counted;
    return { workload_id, ordinal, attempt, memory_bytes: memoryBytes, cpu_seconds: cpuSeconds, processes };
  }
}

/** Without control groups, adds up the instance's processes: counts shared pages more than once and omits the CPU time of exited processes. */
function addUp(folder: InstanceFolder, hasPidNamespace: boolean) {
  const shim = folder.shim();
  if (!shim) return undefined;
  const processes = applicationProcesses(readProcessTree(), { pid: shim.pid, hasPidNamespace });
  const sum = (pick: (process: (typeof processes)[number]) => number) =>
    processes.reduce((total, process) => total + pick(process), 0);
  return {
    memoryBytes: sum((process) => process.rssBytes),
    cpuSeconds: sum((process) => process.cpuSeconds),
    processes: processes.length,
  };
}

/** Waits for all operations before it throws the first error, so that nothing still runs when the caller continues. */
async function allOrFirstFault(works: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
}

function runInStorage(
  options: ProcessRuntimeOptions,
  owner: StorageOwner,
  { file, args }: Command,
  more: RunOptions,
): Promise<ExecResult> {
  const storageDir = options.storageDir(owner.project_id, owner.project_number);
  const plan = {
    ...{ id: `run-${randomBytes(8).toString("hex")}`, uid: uidOf(options, owner), storageDir, cwd: "/storage" },
    ...{ argv: [file, ...args], env: {}, app: null, binds: [], limits: null },
  };
  return options.sandbox.run({ ...plan, network: { kind: "none" } }, more);
}

const shim = join(import.meta.dirname, "shim.sh");

/** Starts one attempt of an ordinal and resolves once its shim has written its pid. A failed start leaves nothing behind. */
async function startInstance(
  options: ProcessRuntimeOptions,
  folders: InstanceFolders,
  workload: Workload,
  place: ReplicaStart,
): Promise<InstanceFolder> {
  const { command: line, ...spec } = sandboxSpec(options, workload, `run-${randomBytes(8).toString("hex")}`);
  if (line === null) throw new Error(`the image ${workload.image_ref} has no process ${workload.process}`);
  const owner = options.sandbox.hostUid(uidOf(options, workload));
  const claimed = folders.claim(recordOf(workload, place, spec.id), owner);
  try {
    const { port } = workload;
    const reach = forwardedSockets(workload.reach);
    const network = port === null ? ({ kind: "egress", reach } as const) : ({ kind: "serve", port, reach } as const);
    const command = await options.sandbox.command({ ...spec, network, argv: shellWords(line) });
    const folder = claimed.withAddress(command.address);
    await launch(folder, command);
    return folder;
  } catch (fault) {
    claimed.giveUp();
    claimed.settle({ code: null, out_of_memory: false, at: new Date() });
    await options.sandbox.remove(spec.id);
    folders.forgetAttempt(claimed);
    throw fault;
  }
}

function recordOf(workload: Workload, place: ReplicaStart, sandboxId: string): InstanceRecord {
  return {
    ...{ workload_id: workload.id, project_id: workload.project_id, image_ref: workload.image_ref, ...place },
    ...{ sandbox_id: sandboxId, boot_id: currentBoot(), started_at: new Date().toISOString() },
    ...{ limits: workload.limits, address: null },
  };
}

async function launch(folder: InstanceFolder, { command, options, close }: SandboxCommand): Promise<void> {
  const words = [shim, folder.path, command.file, ...command.args];
  try {
    await startDetached({ file: "/bin/sh", args: words }, join(folder.path, "output"), options);
  } finally {
    close();
  }
  const started = await until(() => folder.shim(), { timeoutMs: 60_000, firstMs: 2 });
  if (!started && folder.giveUp()) throw new Error("the shim of an application did not start");
}
