import { existsSync } from "node:fs";
import { run, runOk } from "../../kit/exec.ts";
import type {
  Instance,
  InstanceKey,
  InstanceUsage,
  ListeningPort,
  MissingPart,
  OutputChunk,
  ProjectImage,
  Runtime,
  StorageOwner,
  Workload,
} from "../../ports/runtime.ts";
import { createFaultIsolation } from "../../kit/fault-isolation.ts";
import { silentLog } from "../../kit/log.ts";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import type { InstanceFolder } from "./instance-folder.ts";
import { InstanceFolders } from "./instance-folders.ts";
import { isRunning, settleExit, toInstance } from "./observe-instance.ts";
import { listeningPorts } from "./listening-ports.ts";
import { OutputFile } from "./output-file.ts";
import { applicationProcesses, readProcessTree } from "./process-tree.ts";
import { removeRelease } from "./release.ts";
import { removeStored } from "./remove-stored.ts";
import { runOnce } from "./run-once.ts";
import type { ProcessRuntimeOptions } from "./settings.ts";
import { startInstance } from "./start-instance.ts";
import { folderBytes } from "../../kit/folder-bytes.ts";
import { hasPidNamespace, stopInstance } from "./stop-instance.ts";
import { watchInstances, type InstanceWatch } from "./watch-instances.ts";

export interface ProcessRuntime extends Runtime {
  /** Stops watching; the instances go on. */
  close(): void;
}

/**
 * The runtime of one machine without an engine: an instance is a sandboxed process below a shim that outlives this process.
 * What an earlier process of Berth started here is found again. One process of Berth at a time may use the folder.
 */
export async function createProcessRuntime(options: ProcessRuntimeOptions): Promise<ProcessRuntime> {
  const folders = new InstanceFolders(options.stateDir);
  const watch = watchInstances(options, folders);
  const runtime = new SandboxedProcesses(options, folders, watch);
  await runtime.adopt();
  watch.start();
  runtime.sweepHourly();
  return runtime;
}

const endedKeptMs = 60 * 60 * 1000;
const defaultSurplusGraceMs = 10_000;

class SandboxedProcesses implements ProcessRuntime {
  readonly #options: ProcessRuntimeOptions;
  readonly #folders: InstanceFolders;
  readonly #watch: InstanceWatch;
  // One action at a time for each workload.
  readonly #locked = createKeyedMutex();
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: ProcessRuntimeOptions, folders: InstanceFolders, watch: InstanceWatch) {
    this.#options = options;
    this.#folders = folders;
    this.#watch = watch;
  }

  /** Settles what ended while nobody looked, and frees what a crash left without an owner. */
  async adopt(): Promise<void> {
    const log = this.#options.log ?? silentLog;
    const running: string[] = [];
    let isComplete = true;
    const runIsolated = createFaultIsolation(log, "an application could not be adopted");
    for (const workloadId of this.#folders.workloads())
      if (!(await runIsolated(workloadId, () => this.#adoptWorkload(workloadId, running)))) isComplete = false;
    // Nobody knows the sandboxes of what could not be read, and they may be in use.
    const left = isComplete ? await this.#options.sandbox.sweep("run", running) : [];
    if (left.length > 0) log.warn({ sandboxes: left }, "what a crash left of applications could not be removed");
    log.info({ adopted: running.length }, "adopted running applications");
  }

  async #adoptWorkload(workloadId: string, running: string[]): Promise<void> {
    const latest = this.#folders.latest(workloadId);
    // A crash between the making or emptying of a workload's folder and the next step.
    if (latest.length === 0) await this.#folders.forgetWorkload(workloadId, false);
    for (const folder of latest)
      if (settleExit(folder, this.#options.sandbox) === undefined) running.push(folder.record.sandbox_id);
  }

  /** Throws away what surplus replicas left, once it was there long enough to be read. */
  sweepHourly(): void {
    const runIsolated = createFaultIsolation(
      this.#options.log ?? silentLog,
      "what surplus replicas left could not be swept",
    );
    const sweep = () => void runIsolated("ended", () => this.#folders.sweepEnded(Date.now() - endedKeptMs));
    sweep();
    this.#sweeping = setInterval(sweep, endedKeptMs).unref();
  }

  async describe() {
    const { network, isolation, missing } = this.#options.sandbox.describe();
    return { name: "process", network, isolation, missing: missing satisfies readonly MissingPart[] };
  }

  async apply(workload: Workload): Promise<void> {
    await this.#locked(workload.id, async () => {
      const known = this.#folders.ordinals(workload.id);
      const wanted = Array.from({ length: workload.replicas }, (_, ordinal) => ordinal);
      const absent = wanted.filter((ordinal) => this.#folders.latestOf(workload.id, ordinal) === undefined);
      const surplus = known.filter((ordinal) => ordinal >= workload.replicas);
      await allOrFirstFault([
        ...absent.map((ordinal) => this.#start(workload, ordinal)),
        ...surplus.map((ordinal) =>
          this.#retire(workload.id, ordinal, this.#options.surplusGraceMs ?? defaultSurplusGraceMs),
        ),
      ]);
    });
  }

  async restart(workload: Workload, ordinal: number): Promise<void> {
    await this.#locked(workload.id, async () => {
      const latest = this.#folders.latestOf(workload.id, ordinal);
      if (latest && isRunning(latest)) return;
      if (latest) await this.#free(latest);
      await this.#start(workload, ordinal);
      this.#folders.forgetOldAttempts(workload.id, ordinal);
    });
  }

  async observe(workloadId: string): Promise<readonly Instance[]> {
    return this.#folders
      .latest(workloadId)
      .map((folder) => toInstance(folder, settleExit(folder, this.#options.sandbox)));
  }

  async list(): Promise<readonly string[]> {
    return this.#folders.workloads().filter((workloadId) => this.#folders.hasAttempts(workloadId));
  }

  async stop(workloadId: string, graceMs: number): Promise<void> {
    await this.#locked(workloadId, async () => {
      await allOrFirstFault(this.#folders.latest(workloadId).map((folder) => this.#end(folder, graceMs)));
    });
    this.#watch.tell(workloadId);
  }

  remove: Runtime["remove"] = async (workloadId, options) => {
    await this.#locked(workloadId, async () => {
      await allOrFirstFault(this.#folders.latest(workloadId).map((folder) => this.#end(folder, 0)));
      await this.#folders.forgetWorkload(workloadId, options?.forGood ?? false);
    });
  };

  runOnce: Runtime["runOnce"] = (workload, task) => runOnce(this.#options, workload, task);

  async readOutput(key: InstanceKey, cursor: string | null): Promise<OutputChunk> {
    const path = this.#folders.find(key);
    if (path === undefined) return { lines: [], cursor: cursor ?? "0", dropped_bytes: 0 };
    const latest = this.#folders.latestOf(key.workload_id, key.ordinal);
    const isEnded = latest?.path !== path || !isRunning(latest);
    return new OutputFile(path).read(cursor, isEnded);
  }

  async discardOutput(key: InstanceKey, cursor: string): Promise<void> {
    const path = this.#folders.find(key);
    if (path !== undefined) await new OutputFile(path).discard(cursor);
  }

  onChange(listener: (workloadId: string) => void): () => void {
    return this.#watch.listen(listener);
  }

  async removeImage(image: ProjectImage): Promise<void> {
    const users = this.#folders.workloads().flatMap((workloadId) => this.#folders.latest(workloadId));
    const user = users.find(
      (folder) =>
        folder.record.image_ref === image.image_ref &&
        folder.record.project_id === image.project_id &&
        isRunning(folder),
    );
    if (user) throw new Error(`the image is in use by ${user.record.workload_id}`);
    removeRelease(this.#options.releasesDir, image);
  }

  async measure(workloadId: string): Promise<readonly InstanceUsage[]> {
    const running = this.#folders.latest(workloadId).filter(isRunning);
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

  async removeStorage({ project_id, project_number }: StorageOwner): Promise<void> {
    const folder = this.#options.storageDir(project_id, project_number);
    if (!existsSync(folder)) return;
    // An application may have closed its folders to its own user.
    await run({ file: "chmod", args: ["--recursive", "u+rwX", folder] });
    await runOk({ file: "rm", args: ["--recursive", "--force", "--one-file-system", "--", folder] });
  }

  storageBytes({ project_id, project_number }: StorageOwner): Promise<number | null> {
    return folderBytes(this.#options.storageDir(project_id, project_number));
  }

  removeStored: Runtime["removeStored"] = (project, path, signal) => removeStored(this.#options, project, path, signal);

  close(): void {
    clearInterval(this.#sweeping);
    this.#watch.stop();
  }

  async #start(workload: Workload, ordinal: number): Promise<void> {
    const place = { ordinal, attempt: this.#folders.nextAttempt(workload.id, ordinal) };
    const folder = await startInstance(this.#options, this.#folders, workload, place);
    if (!folder) return;
    this.#watch.add(folder);
    this.#watch.tell(workload.id);
  }

  async #retire(workloadId: string, ordinal: number, graceMs: number): Promise<void> {
    const latest = this.#folders.latestOf(workloadId, ordinal);
    if (latest) await this.#end(latest, graceMs);
    await this.#folders.retire(workloadId, ordinal);
  }

  async #end(folder: InstanceFolder, graceMs: number): Promise<void> {
    await stopInstance(folder, this.#options.sandbox, graceMs);
    await this.#free(folder);
  }

  async #free(folder: InstanceFolder): Promise<void> {
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

/** Without control groups: the sum over its processes, which counts shared pages more than once and forgets the time of ended ones. */
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

/** Lets all of them end before a fault of one is thrown, so that nothing goes on behind the caller's back. */
async function allOrFirstFault(works: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
}
