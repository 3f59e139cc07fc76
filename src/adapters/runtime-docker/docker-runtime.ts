import { mkdirSync } from "node:fs";
import { openDockerApi, unlessStatus } from "../../kit/docker-api.ts";
import { writeFolder } from "../../kit/folder-tar.ts";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { silentLog } from "../../kit/log.ts";
import { forwardedAddress } from "../../kit/server-address.ts";
import { StorageFolders } from "../../kit/storage-folder.ts";
import { throwTogether } from "../../kit/throw-together.ts";
import { trustedCertificates } from "../../sandbox/certificates.ts";
import type {
  Instance,
  InstanceExit,
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
import {
  labels,
  containerName,
  makeStorage,
  tagOf,
  type DockerRuntimeOptions,
  type EngineFacts,
} from "../../containers/settings.ts";
import {
  endContainer,
  hasStarted,
  isRunning,
  keyOf,
  listContainers,
  readContainer,
  readExit,
  removeContainer,
  roleOf,
  sameKey,
  toInstance,
  type ListedContainer,
} from "../../containers/containers.ts";
import type { DockerRuntime } from "../../containers/docker-runtime.ts";
import { describeEngine, readEngineFacts } from "../../containers/engine-facts.ts";
import { commandOf, removeImage } from "../../containers/image-trees.ts";
import { OutputLog } from "../../containers/output-log.ts";
import { runOwnCheck } from "../../containers/own-check.ts";
import { listeningIn, readUsage } from "../../containers/look-into.ts";
import { openPrivateFolders } from "../../containers/private-folders.ts";
import { createProjectNetworks } from "../../containers/project-networks.ts";
import { changeStored } from "../../containers/change-stored.ts";
import { runOnce } from "../../containers/run-once.ts";
import { movedBy, moving, removedBy, removing } from "../../kit/move-below.ts";
import { removeContainers, startContainers, type DockerParts } from "../../containers/start-instance.ts";
import { createStartGate } from "../../containers/start-gate.ts";
import { watchEvents, type EventWatch } from "../../containers/watch-events.ts";

/**
 * Creates the runtime for one machine with a Docker engine. An instance is a container plus a second one that holds its network; labels
 * identify both. They survive restarts of Berth and, with live-restore, of the engine. An engine that does not answer is not an error here:
 * `describe` reports it, and every other call rejects until it answers.
 */
export async function createDockerRuntime(options: DockerRuntimeOptions): Promise<DockerRuntime> {
  mkdirSync(options.stateDir, { recursive: true, mode: 0o711 });
  const api = openDockerApi(options.socketPath);
  let facts: EngineFacts | undefined;
  const context = {
    ...{ options, api, tag: tagOf(options.stateDir) },
    certificates: trustedCertificates(options.stateDir, options.caFile, options.databaseCaFile),
    engine: async () => (facts ??= await readEngineFacts(api)),
    runExclusive: createKeyedMutex(),
  };
  const folders = await openPrivateFolders(`${options.stateDir}/layers`, options.layerBytes);
  const runtime = new Containers({
    ...context,
    folders,
    networks: await createProjectNetworks(context),
    starts: createStartGate(),
  });
  await runtime.adopt().catch((error: unknown) => {
    options.log?.warn({ err: error }, "the Docker engine does not answer; its containers are adopted when it does");
  });
  return runtime;
}

class Containers extends StorageFolders implements DockerRuntime {
  readonly parts: DockerParts;
  readonly #events: EventWatch;
  // Caches exits by container id: a container that has exited never starts again.
  readonly #exits = new Map<string, InstanceExit>();

  constructor(parts: DockerParts) {
    super(parts.options);
    this.parts = parts;
    this.#events = watchEvents(parts, ({ id, status, labels: own }) => {
      if (status === "die" && own[labels.role] === "network") void this.#endWithoutNetwork(id, own);
    });
  }

  /** Removes what a crash left behind: one-off commands, incomplete instances, folders without a container. */
  async adopt(): Promise<void> {
    const apps = await this.#removeAllBut((container) => roleOf(container) === "app" && hasStarted(container));
    await this.parts.networks.removeUnused();
    this.#log.info({ adopted: apps.filter(isRunning).length }, "adopted running containers");
  }

  /** Removes all containers and folders except those for which `stays` returns true. Returns the kept application containers. */
  async #removeAllBut(stays: (container: ListedContainer) => boolean): Promise<readonly ListedContainer[]> {
    const nameOf = (container: ListedContainer) => containerName(this.parts.tag, keyOf(container));
    const all = await listContainers(this.parts);
    const apps = all.filter(stays);
    const kept = new Set(apps.map(nameOf));
    const isNetwork = (container: ListedContainer) => roleOf(container) === "network";
    const others = all.filter((container) => !isNetwork(container) && !apps.includes(container));
    await Promise.all(others.map(({ Id }) => removeContainer(this.parts.api, Id)));
    const lost = all.filter((container) => isNetwork(container) && !kept.has(nameOf(container)));
    await Promise.all(lost.map(({ Id }) => removeContainer(this.parts.api, Id)));
    for (const name of this.parts.folders.names()) if (!kept.has(name)) await this.parts.folders.close(name);
    return apps;
  }

  async describe(): Promise<RuntimeDescription> {
    const { engine, folders, options } = this.parts;
    // Queries each time: the facts are cached, but the engine may not answer now.
    const found = await this.parts.api.call({ path: "/version", timeoutMs: 5000 }).then(engine, (e: unknown) => e);
    const ociRuntime = options.ociRuntime ?? null;
    const host = { hasLayers: folders.isAvailable, socketPath: options.socketPath, ociRuntime };
    return describeEngine(found as EngineFacts | Error, host);
  }

  unavailable = async () => (await this.describe()).missing.find(({ part }) => part === "engine");

  start(workload: Workload, replica: ReplicaStart): Promise<Instance> {
    return this.parts.runExclusive(`${workload.id}/${replica.ordinal}`, async () => {
      const existing = (await this.#listed(workload.id)).filter(({ app }) => keyOf(app).ordinal === replica.ordinal);
      const newest = existing.find(({ app }) => keyOf(app).attempt >= replica.attempt);
      if (newest) return this.#toInstance(newest);
      for (const { app } of existing) await removeContainers(this.parts, containerName(this.parts.tag, keyOf(app)));
      const key = { workload_id: workload.id, ...replica };
      const command = (image: Parameters<typeof commandOf>[0]) => commandOf(image, workload);
      const { app } = await startContainers(this.parts, { workload, key, role: "app", command });
      const started = (await this.#listed(workload.id)).find((each) => each.app.Id === app);
      if (!started) throw new Error(`a container of ${workload.id} was removed while it started`);
      return this.#toInstance(started);
    });
  }

  async observe(): Promise<readonly Instance[]> {
    const listed = newestOf(pairsIn(await listContainers(this.parts)));
    const ids = new Set(listed.map(({ app }) => app.Id));
    for (const id of this.#exits.keys()) if (!ids.has(id)) this.#exits.delete(id);
    return (await Promise.all(listed.map((each) => this.#toInstance(each)))).filter((each) => each !== null);
  }

  stop(workloadId: string, graceMs: number, ordinals?: readonly number[]): Promise<void> {
    return this.#each(workloadId, ordinals, ({ Id }) => endContainer(this.parts.api, Id, graceMs));
  }

  remove(workloadId: string, ordinals?: readonly number[]): Promise<void> {
    return this.#each(workloadId, ordinals, (app) =>
      removeContainers(this.parts, containerName(this.parts.tag, keyOf(app))),
    );
  }

  async #each(
    workloadId: string,
    ordinals: readonly number[] | undefined,
    work: (app: ListedContainer) => Promise<void>,
  ): Promise<void> {
    const all = await listContainers(this.parts, `${labels.workload}=${workloadId}`);
    const apps = all.filter((container) => roleOf(container) === "app");
    const wanted = apps.filter((app) => ordinals?.includes(keyOf(app).ordinal) ?? true);
    const works = wanted.map((app) => this.parts.runExclusive(`${workloadId}/${keyOf(app).ordinal}`, () => work(app)));
    throwTogether(await Promise.allSettled(works));
  }

  runOnce: Runtime["runOnce"] = (workload, task) => runOnce(this.parts, workload, task);

  async readOutput(key: InstanceKey, cursor: string | null): Promise<OutputChunk> {
    const all = await listContainers(this.parts, `${labels.workload}=${key.workload_id}`);
    const app = all.find((container) => roleOf(container) === "app" && sameKey(keyOf(container), key));
    if (!app) return { lines: [], cursor: cursor ?? ":0", dropped_bytes: 0 };
    const { rootDir } = await this.parts.engine();
    return new OutputLog(rootDir, app.Id).read(cursor, !isRunning(app));
  }

  /** Nothing to do: the engine discards the oldest output by itself, and the rest with the container. */
  async discardOutput(): Promise<void> {}

  endpointFor = forwardedAddress;

  onChange(listener: (workloadId: string) => void): () => void {
    return this.#events.listen(listener);
  }

  async removeImage(image: ProjectImage): Promise<void> {
    const users = await listContainers(this.parts, `${labels.image}=${image.image_ref}`);
    const user = users.find((each) => isRunning(each) && each.Labels[labels.project] === image.project_id);
    if (user) throw new Error(`the image is in use by ${keyOf(user).workload_id}`);
    await removeImage(this.parts, image);
  }

  async checkHealth(key: InstanceKey): Promise<OwnCheck> {
    const { api, tag } = this.parts;
    return runOwnCheck(api, await readContainer(api, containerName(tag, key)));
  }

  async measure(workloadId: string): Promise<readonly InstanceUsage[]> {
    const living = (await this.#listed(workloadId)).filter(({ app }) => isRunning(app));
    const usages = await Promise.all(
      living.map(async ({ app }) => ({ ...keyOf(app), usage: await readUsage(this.parts.api, app.Id) })),
    );
    return usages.flatMap(({ usage, ...key }) => (usage === undefined ? [] : [{ ...key, ...usage }]));
  }

  async listening(workloadId: string): Promise<readonly ListeningPort[]> {
    const living = (await this.#listed(workloadId)).filter(({ app }) => isRunning(app));
    return listeningIn(
      this.parts.api,
      living.map(({ app }) => app.Id),
    );
  }

  writeStorage: Runtime["writeStorage"] = async (owner, name, ...what) => {
    if (name === null) await makeStorage(this.parts, owner);
    await writeFolder(this.storageFolder(owner), name, ...what);
  };

  async changedBytes(projectId: string): Promise<number> {
    const own = await listContainers(this.parts, `${labels.project}=${projectId}`);
    const running = own.filter((container) => roleOf(container) === "app" && isRunning(container));
    const names = running.map((container) => containerName(this.parts.tag, keyOf(container)));
    const changed = await Promise.all(names.map((name) => this.parts.folders.changedBytes(name)));
    return changed.reduce((sum, bytes) => sum + bytes, 0);
  }

  moveStored: Runtime["moveStored"] = async (project, move, signal) =>
    movedBy(await changeStored(this.parts, project, moving(move), signal), move);

  removeStored: Runtime["removeStored"] = async (project, path, signal) =>
    removedBy(await changeStored(this.parts, project, removing(path), signal));

  close(): void {
    this.#events.close();
  }

  async dismantle(): Promise<void> {
    await this.parts.starts.close();
    const removeAll = async () => {
      await this.#removeAllBut(() => false);
      await this.parts.networks.removeUnused();
    };
    // Removes the rules even if the engine does not answer; its containers and networks stay in that case.
    await removeAll().catch((error: unknown) => {
      this.#log.warn({ err: error }, "the containers and their networks could not be removed");
    });
    await this.parts.networks.dismantle();
  }

  get #log() {
    return this.parts.options.log ?? silentLog;
  }

  /** Returns the workload's started containers, newest attempt first. */
  async #listed(workloadId: string): Promise<readonly Pair[]> {
    const pairs = pairsIn(await listContainers(this.parts, `${labels.workload}=${workloadId}`));
    return pairs.toSorted((one, other) => keyOf(other.app).attempt - keyOf(one.app).attempt);
  }

  async #toInstance({ app, network }: Pair): Promise<Instance> {
    const { rootDir } = await this.parts.engine();
    const exit = isRunning(app) ? null : await this.#exitOf(app.Id);
    return toInstance(rootDir, app, { network, exit });
  }

  async #exitOf(id: string): Promise<InstanceExit> {
    const known = this.#exits.get(id);
    if (known) return known;
    // The container was removed after it was listed.
    const gone = { code: null, out_of_memory: false, at: new Date() };
    const exit = (await unlessStatus(readExit(this.parts.api, id), 404)) ?? gone;
    this.#exits.set(id, exit);
    return exit;
  }

  /** Kills the application whose network container died: it can neither answer requests nor reach its database. Its next attempt gets a new one. */
  async #endWithoutNetwork(id: string, own: Readonly<Record<string, string>>): Promise<void> {
    const all = await listContainers(this.parts, `${labels.workload}=${own[labels.workload]}`).catch(() => []);
    const network = all.find((container) => container.Id === id);
    const isPartner = (each: ListedContainer) =>
      network !== undefined && roleOf(each) === "app" && isRunning(each) && sameKey(keyOf(each), keyOf(network));
    const app = all.find(isPartner);
    if (app) await endContainer(this.parts.api, app.Id, 0).catch(() => {});
  }
}

interface Pair {
  readonly app: ListedContainer;
  readonly network: ListedContainer | undefined;
}

function pairsIn(all: readonly ListedContainer[]): readonly Pair[] {
  const name = (container: ListedContainer) => containerName("", keyOf(container));
  const networks = new Map(all.flatMap((each) => (roleOf(each) === "network" ? [[name(each), each] as const] : [])));
  const apps = all.filter((each) => roleOf(each) === "app" && hasStarted(each));
  return apps.map((app) => ({ app, network: networks.get(name(app)) }));
}

function newestOf(pairs: readonly Pair[]): readonly Pair[] {
  const newest = new Map<string, Pair>();
  for (const pair of pairs) {
    const { workload_id, ordinal, attempt } = keyOf(pair.app);
    const known = newest.get(`${workload_id}/${ordinal}`);
    if (!known || keyOf(known.app).attempt < attempt) newest.set(`${workload_id}/${ordinal}`, pair);
  }
  return [...newest.values()];
}
