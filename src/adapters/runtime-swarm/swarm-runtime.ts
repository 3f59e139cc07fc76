import { throwTogether } from "../../kit/throw-together.ts";
import { unixSocketOf } from "../../kit/server-address.ts";
import { silentLog } from "../../kit/log.ts";
import { repeatEvery } from "../../kit/repeat-every.ts";
import { shareRuns } from "../../kit/share-runs.ts";
import type {
  Instance,
  InstanceKey,
  InstanceUsage,
  ListeningPort,
  OutputChunk,
  OwnCheck,
  ProjectImage,
  ReplicaStart,
  Runtime,
  RuntimeDescription,
  Workload,
} from "../../ports/runtime.ts";
import type { MachinePool } from "../../ports/machines.ts";
import type { DockerRuntime } from "../../containers/docker-runtime.ts";
import { listeningIn, readUsage } from "../../containers/look-into.ts";
import { runOwnCheck } from "../../containers/own-check.ts";
import { readContainer, sameKey } from "../../containers/containers.ts";
import { containerName } from "../../containers/settings.ts";
import { describeSwarm } from "./describe-swarm.ts";
import { endAttempt } from "./end-attempt.ts";
import { createGuard, type Guard } from "./guard.ts";
import { createMachinePool } from "./machine-pool.ts";
import { isUnreachable, joinManagers } from "./managers.ts";
import { createRecall } from "./recall.ts";
import { unregisterImage } from "./image-registry.ts";
import { emptyMemory, hasStarted, keyOf, newestOf, readReplicas, toInstance, type SwarmReplica } from "./replicas.ts";
import { createAttemptOutput, type AttemptOutput } from "./attempt-output.ts";
import { awaitStarted, removeAttempt, startAttempt } from "./start-attempt.ts";
import type { SwarmContext, SwarmOptions } from "./settings.ts";
import { hastenHeartbeat, readMembership } from "./swarm-api.ts";
import { removeUnusedFiles } from "./swarm-files.ts";
import { removeUnusedOverlays } from "./swarm-networks.ts";

export interface SwarmRuntime extends Runtime {
  /** Stops watching; everything keeps running. */
  close(): void;
  /** Removes guard, networks, files and rules. Call it when nothing runs any more. */
  dismantle(): Promise<void>;
}

const watchMs = 500;

/**
 * Creates the runtime for a Docker Swarm that this machine's engine manages. Replicas without storage are services on any machine, each
 * with one task that only Berth restarts. What needs this machine's disk (storage, a database's socket, one-off commands) runs in a
 * container of this machine's engine, as in the Docker runtime.
 */
export function createSwarmRuntime(
  local: DockerRuntime,
  { registry, edgeAddresses = [], otherManagers = [] }: SwarmOptions,
): SwarmRuntime {
  const engines = [local.parts.api, ...otherManagers];
  const managers = joinManagers(engines);
  return new Swarm(local, { ...local.parts, engines, managers, registry, edgeAddresses, recall: createRecall() });
}

class Swarm implements SwarmRuntime {
  readonly machines: MachinePool;
  readonly #local: DockerRuntime;
  readonly #context: SwarmContext;
  readonly #guard: Guard;
  readonly #output: AttemptOutput;
  readonly #memory = emptyMemory();
  readonly #readAll = shareRuns(() => readReplicas(this.#context, this.#memory));
  readonly #listeners = new Set<(workloadId: string) => void>();
  readonly #endWatch: () => void;
  #seen = new Map<string, string>();
  #here: readonly Instance[] | undefined;
  #isHastened = false;

  constructor(local: DockerRuntime, context: SwarmContext) {
    this.#local = local;
    this.#context = context;
    this.#guard = createGuard(context);
    this.machines = createMachinePool(context, this.#guard);
    this.#output = createAttemptOutput(context);
    this.#endWatch = repeatEvery(watchMs, () => this.#look());
  }

  describe = async (): Promise<RuntimeDescription> =>
    describeSwarm(this.#context, this.#guard, await this.#local.describe());

  async start(workload: Workload, replica: ReplicaStart): Promise<Instance> {
    const key = { workload_id: workload.id, ...replica };
    if (needsThisMachine(workload)) {
      await this.#removeAttempts(workload.id, [replica.ordinal]);
      return this.#local.start(workload, replica);
    }
    await this.#unlessAbsent(workload.id, this.#local.remove(workload.id, [replica.ordinal]));
    return this.#context.runExclusive(`${workload.id}/${replica.ordinal}`, async () => {
      await this.#hasten();
      const existing = (await this.#replicas(workload.id)).filter((each) => keyOf(each).ordinal === replica.ordinal);
      const newest = existing.find((each) => keyOf(each).attempt >= replica.attempt);
      if (newest !== undefined) {
        await awaitStarted(this.#context, newest.name);
        return this.#instance(workload.id, keyOf(newest));
      }
      for (const older of existing) await this.#endAndRemove(older);
      await startAttempt(this.#context, this.#guard, { workload, key });
      return this.#instance(workload.id, key);
    });
  }

  async observe(): Promise<readonly Instance[]> {
    const [local, replicas] = await Promise.all([this.#observeHere(), this.#replicas()]);
    this.#followAll(replicas);
    const started = newestOf(replicas.filter(hasStarted));
    return [...local, ...started.map((each) => toInstance(each, this.#output.mark(each.name)))];
  }

  async stop(workloadId: string, graceMs: number, ordinals?: readonly number[]): Promise<void> {
    const ends = [
      this.#unlessAbsent(workloadId, this.#local.stop(workloadId, graceMs, ordinals)),
      this.#each(workloadId, ordinals, async (each) => {
        await endAttempt(this.#context, each);
        if (hasStarted(each) && !isLost(each)) await this.#output.finish(each.name);
      }),
    ];
    throwTogether(await Promise.allSettled(ends));
  }

  async remove(workloadId: string, ordinals?: readonly number[]): Promise<void> {
    const here = this.#unlessAbsent(workloadId, this.#local.remove(workloadId, ordinals));
    const ends = [here, this.#removeAttempts(workloadId, ordinals)];
    throwTogether(await Promise.allSettled(ends));
  }

  runOnce: Runtime["runOnce"] = (workload, task) => this.#local.runOnce(workload, task);

  async readOutput(key: InstanceKey, cursor: string | null): Promise<OutputChunk> {
    const name = containerName(this.#context.tag, key);
    if (this.#memory.lost.has(name)) return this.#output.read(name, cursor, true);
    const found = await this.#replica(key);
    if (found === undefined) return this.#local.readOutput(key, cursor);
    if (found.exit === null) await this.#output.catchUp(found.name);
    else await this.#output.finish(found.name);
    return this.#output.read(found.name, cursor, found.exit !== null);
  }

  /** Nothing to do: the oldest output is discarded automatically, and the rest with the service. */
  async discardOutput(): Promise<void> {}

  endpointFor: Runtime["endpointFor"] = (server) => this.#local.endpointFor(server);

  onChange(listener: (workloadId: string) => void): () => void {
    const end = this.#local.onChange(listener);
    this.#listeners.add(listener);
    return () => {
      end();
      this.#listeners.delete(listener);
    };
  }

  async removeImage(image: ProjectImage): Promise<void> {
    const users = (await this.#replicas()).map((each) => ({ each, instance: toInstance(each, "") }));
    const isUser = ({ instance }: (typeof users)[number]) =>
      instance.state === "running" &&
      instance.image_ref === image.image_ref &&
      instance.project_id === image.project_id;
    const user = users.find(isUser);
    if (user) throw new Error(`the image is in use by ${user.instance.workload_id}`);
    await unregisterImage(this.#context, image);
    await this.#local.removeImage(image);
  }

  /** Returns `none` for replicas on other machines: only this machine's engine can run a command in a container. */
  async checkHealth(key: InstanceKey): Promise<OwnCheck> {
    const found = await this.#replica(key);
    if (found === undefined) return this.#local.checkHealth(key);
    const [here] = await this.#containersHere([found]);
    return here === undefined
      ? { outcome: "none" }
      : runOwnCheck(this.#context.api, await readContainer(this.#context.api, here.container));
  }

  async measure(workloadId: string): Promise<readonly InstanceUsage[]> {
    const local = await this.#local.measure(workloadId);
    const here = await this.#containersHere(await this.#replicas(workloadId));
    const usages = await Promise.all(
      here.map(async ({ replica, container }) => ({
        key: keyOf(replica),
        usage: await readUsage(this.#context.api, container),
      })),
    );
    return [...local, ...usages.flatMap(({ key, usage }) => (usage === undefined ? [] : [{ ...key, ...usage }]))];
  }

  async listening(workloadId: string): Promise<readonly ListeningPort[]> {
    const here = await this.#containersHere(await this.#replicas(workloadId));
    if (here.length === 0) return this.#local.listening(workloadId);
    return listeningIn(
      this.#context.api,
      here.map(({ container }) => container),
    );
  }

  hasStorage: Runtime["hasStorage"] = (project) => this.#local.hasStorage(project);

  storageBytes: Runtime["storageBytes"] = (project) => this.#local.storageBytes(project);

  limitStorage: Runtime["limitStorage"] = (project, bytes) => this.#local.limitStorage(project, bytes);

  readStorage: Runtime["readStorage"] = (project, signal) => this.#local.readStorage(project, signal);
  writeStorage: Runtime["writeStorage"] = (project, ...what) => this.#local.writeStorage(project, ...what);
  removeStorage: Runtime["removeStorage"] = (project) => this.#local.removeStorage(project);

  listStored: Runtime["listStored"] = (...what) => this.#local.listStored(...what);
  readStored: Runtime["readStored"] = (...what) => this.#local.readStored(...what);
  statStored: Runtime["statStored"] = (project, path) => this.#local.statStored(project, path);
  moveStored: Runtime["moveStored"] = (project, ...what) => this.#local.moveStored(project, ...what);
  removeStored: Runtime["removeStored"] = (project, path, signal) => this.#local.removeStored(project, path, signal);

  changedBytes: Runtime["changedBytes"] = (projectId) => this.#local.changedBytes(projectId);

  close(): void {
    this.#endWatch();
    this.#output.close();
    this.#local.close();
  }

  async dismantle(): Promise<void> {
    await this.#takeBack().catch((error: unknown) => {
      this.#log.warn({ err: error }, "the swarm's guard, networks and files could not be removed");
    });
    await this.#local.dismantle();
  }

  async #takeBack(): Promise<void> {
    await this.#guard.remove();
    await removeUnusedOverlays(this.#context);
    await removeUnusedFiles(this.#context);
  }

  get #log() {
    return this.#context.options.log ?? silentLog;
  }

  async #replicas(workloadId?: string): Promise<readonly SwarmReplica[]> {
    const all = await this.#readAll();
    return workloadId === undefined ? all : all.filter((each) => keyOf(each).workload_id === workloadId);
  }

  /** Returns this machine's containers; while its engine is down, those that ran before, because they outlive it. */
  async #observeHere(): Promise<readonly Instance[]> {
    this.#here = await this.#local.observe().catch((error: unknown) => {
      if (this.#here === undefined || !isUnreachable(error)) throw error;
      return this.#here;
    });
    return this.#here;
  }

  /** Ignores that this machine's engine is down if it ran no container of the workload. */
  async #unlessAbsent(workloadId: string, work: Promise<void>): Promise<void> {
    await work.catch((error: unknown) => {
      const isAbsent = this.#here?.every((each) => each.workload_id !== workloadId) ?? false;
      if (!isAbsent || !isUnreachable(error)) throw error;
    });
  }

  async #replica(key: InstanceKey): Promise<SwarmReplica | undefined> {
    return (await this.#replicas(key.workload_id)).find((each) => sameKey(keyOf(each), key));
  }

  async #instance(workloadId: string, key: InstanceKey): Promise<Instance> {
    const found = await this.#replica({ ...key, workload_id: workloadId });
    if (found === undefined) throw new Error(`a service of ${workloadId} was removed while it started`);
    this.#followAll([found]);
    return toInstance(found, this.#output.mark(found.name));
  }

  async #each(
    workloadId: string,
    ordinals: readonly number[] | undefined,
    work: (replica: SwarmReplica) => Promise<void>,
  ): Promise<void> {
    const own = await this.#replicas(workloadId);
    const wanted = own.filter((each) => ordinals?.includes(keyOf(each).ordinal) ?? true);
    const works = wanted.map((each) =>
      this.#context.runExclusive(`${workloadId}/${keyOf(each).ordinal}`, () => work(each)),
    );
    throwTogether(await Promise.allSettled(works));
  }

  async #removeAttempts(workloadId: string, ordinals?: readonly number[]): Promise<void> {
    await this.#each(workloadId, ordinals, (each) => this.#endAndRemove(each));
  }

  async #endAndRemove(replica: SwarmReplica): Promise<void> {
    await endAttempt(this.#context, replica);
    await removeAttempt(this.#context, replica.name);
    this.#output.forget(replica.name);
    this.#memory.lost.delete(replica.name);
  }

  #followAll(replicas: readonly SwarmReplica[]): void {
    for (const each of replicas) {
      if (!hasStarted(each)) continue;
      if (each.exit === null) this.#output.follow(each.name);
    }
  }

  async #containersHere(replicas: readonly SwarmReplica[]) {
    if (replicas.length === 0) return [];
    const { api, recall } = this.#context;
    const { nodeId } = await recall("membership", () => readMembership(api));
    return replicas.flatMap((replica) => {
      const container = replica.task?.Status.ContainerStatus?.ContainerID;
      const isHere = replica.task?.NodeID === nodeId && replica.exit === null && hasStarted(replica);
      return isHere && container ? [{ replica, container }] : [];
    });
  }

  /** Polls for changes, because a swarm sends no events about tasks. Rejects when the managers have no quorum; `observe` reports that. */
  async #look(): Promise<void> {
    const replicas = await this.#replicas();
    this.#followAll(replicas);
    const now = new Map(replicas.map((each) => [each.name, `${each.exit === null}/${each.task?.Status.State}`]));
    const changed = replicas.filter((each) => now.get(each.name) !== this.#seen.get(each.name));
    this.#seen = now;
    for (const id of new Set(changed.map((each) => keyOf(each).workload_id)))
      for (const listener of this.#listeners) listener(id);
  }

  async #hasten(): Promise<void> {
    if (this.#isHastened) return;
    await hastenHeartbeat(this.#context.managers);
    this.#isHastened = true;
  }
}

/** Returns whether the replica's machine is lost. Managers would wait in vain for its output. */
const isLost = ({ exit }: SwarmReplica): boolean => exit?.machine_lost === true;

/** Returns whether a workload must run here: it is built for Docker alone, or storage or a database's socket is on this machine's disk. */
function needsThisMachine({ runtime, storage_access, reach }: Workload): boolean {
  return runtime === "docker" || storage_access !== "none" || reach.some((server) => unixSocketOf(server) !== null);
}
