import { mkdir, readdir, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { existsSync } from "node:fs";
import { createBuildLog, type BuildLog } from "../../building/build-log.ts";
import { outcomeOfError } from "../../building/outcome-of-error.ts";
import { planSource, type Planner } from "../../building/plan-source.ts";
import { limitTime } from "../../building/time-limit.ts";
import { unpackSource } from "../../building/unpack.ts";
import { watchDisk } from "../../building/watch-disk.ts";
import { DockerRefused, openDockerApi, type DockerApi } from "../../kit/docker-api.ts";
import { folderBytesNow } from "../../kit/folder-bytes.ts";
import type { BuildOutcome, BuildRequest, Builder, Image, RegistryLogin } from "../../ports/builder.ts";
import { imageLabels } from "../../ports/image-labels.ts";
import type { TakenDisk } from "./build-disks.ts";
import type { BuildRun } from "./build-run.ts";
import { forgetCacheScope } from "./cache-scope.ts";
import { dockerfileOf, fromDockerfile, planDockerfile } from "./from-dockerfile.ts";
import { fromPlan, machineOf } from "./from-plan.ts";
import type { DockerBuilderOptions } from "./options.ts";
import { admitLogins } from "./registry-access.ts";
import { findImage, copyImage } from "./move-image.ts";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { startBuildEngine, type BuildEngine, type BuildEngineOptions } from "./build-engine.ts";
import { mayStartFrom } from "./read-dockerfile.ts";

export type { DockerBuilderOptions } from "./options.ts";

export interface DockerBuilder extends Builder {
  close(): Promise<void>;
}

/** Creates a builder of images from the source's or a generated Dockerfile, in an engine of its own; they are copied to the running one. */
export async function createDockerBuilder(options: DockerBuilderOptions): Promise<DockerBuilder> {
  const { runSocket, buildsDir, engine, parents, sharedImages, privateRegistries } = options;
  await mkdir(buildsDir, { recursive: true, mode: 0o755 });
  for (const name of await readdir(buildsDir)) await rm(join(buildsDir, name), { recursive: true, force: true });
  const runEngine = openDockerApi(runSocket);
  const keeper = keepEngines({
    ...{ options: engine, runEngine, privateRegistries },
    sharedImages: [...new Set([...Object.values<string>({ ...parents }), ...sharedImages])],
  });
  const scopesDir = join(engine.dir, "scopes");
  const disks = new Map<string, () => Promise<number | null>>();
  return {
    build: (request) => build({ options, runEngine, keeper, scopesDir, disks }, request),
    plan: (request) => planSource(request, plannerOf(options)),
    images: async (id) => (await imagesOf(runEngine, id)).map(({ Id }) => Id),
    adopt: async ({ project_id, image_ref }, to) => {
      const own = (await imagesOf(runEngine, project_id)).some(({ Id }) => Id === image_ref);
      return own ? relabel(runEngine, image_ref, to.project_id) : null;
    },
    diskBytes: (id) => diskBytes(runEngine, id),
    isShortOfSpace: () => isShortOfSpace(runEngine, options.diskFloorBytes),
    takenBytes: async (buildId) => (await disks.get(buildId)?.()) ?? null,
    tryLogin: (login) => tryLogin(keeper, login),
    clearCaches: (id) => forgetCacheScope(scopesDir, id),
    close: () => keeper.stop(),
  };
}

/** The build engine logs in, because its network is closed to private registries; it needs none of its images for that. */
async function tryLogin(keeper: EngineKeeper, { host, username, password }: RegistryLogin) {
  const use = keeper.use(null);
  try {
    const { api } = await use.engine("");
    const serveraddress = host === "docker.io" ? "https://index.docker.io/v1/" : host;
    const body = { username, password, serveraddress };
    await api.call({ method: "POST", path: "/auth", body, timeoutMs: loginMs });
    return "accepted";
  } catch (error) {
    return error instanceof DockerRefused && /unauthorized|denied|\b401\b|incorrect/i.test(error.message)
      ? "refused"
      : "unknown";
  } finally {
    use.release();
  }
}

const loginMs = 15_000;

const plannerOf = (options: DockerBuilderOptions): Planner => ({
  folder: options.buildsDir,
  maxSourceBytes: options.maxSourceBytes,
  machineFor: async () => machineOf(options),
  nodeVersion: /:v?(\d+(?:\.\d+)*)/.exec(options.parents.node)?.[1] ?? "of the image",
  planOwn: planDockerfile,
});

interface Shared extends Pick<BuildRun, "options" | "runEngine" | "scopesDir"> {
  readonly keeper: EngineKeeper;
  /** Measure how much disk the running builds use, by their ids. */
  readonly disks: Map<string, () => Promise<number | null>>;
}

async function build({ keeper, disks, ...shared }: Shared, request: BuildRequest): Promise<BuildOutcome> {
  const log = createBuildLog(request.onLine, request.secrets);
  const folder = join(shared.options.buildsDir, request.build_id);
  const taken = new Set<TakenDisk>();
  const measure = async () => {
    const parts = await Promise.all([folderBytesNow(folder), ...[...taken].map((each) => each.bytes())]);
    return parts.includes(null) ? null : parts.reduce((sum: number, bytes) => sum + (bytes ?? 0), 0);
  };
  disks.set(request.build_id, measure);
  const { buildsDir, buildDiskBytes } = shared.options;
  const disk = watchDisk({ disk: buildsDir, measure, limitBytes: buildDiskBytes });
  const time = limitTime(request, disk.signal);
  const use = keeper.use(request.registries.length > 0 ? request.org_id : null);
  try {
    time.check();
    await mkdir(folder, { mode: 0o700 });
    const logins = await admitted(shared.options, request, log);
    if (request.registries.length === 0) await keeper.forget(request.org_id);
    const run = { ...shared, ...use, logins, request, log, time, folder, taken };
    return { outcome: "built", image: await makeImage(run) };
  } catch (error) {
    return outcomeOfError(error, { request, log, time });
  } finally {
    disk.stop();
    disks.delete(request.build_id);
    for (const each of taken) each.leave();
    use.release();
    await rm(folder, { recursive: true, force: true });
  }
}

async function admitted({ privateRegistries }: DockerBuilderOptions, { registries }: BuildRequest, log: BuildLog) {
  const { admitted: logins, refused } = await admitLogins(registries, privateRegistries);
  for (const { host } of refused)
    log.detail(
      `${host} resolves to a private network, so its password is not sent (BERTH_PRIVATE_REGISTRIES can allow it)`,
    );
  return logins;
}

interface ListedImage {
  readonly Id: string;
  readonly Size: number;
  readonly SharedSize: number;
  readonly Labels: Readonly<Record<string, string>> | null;
}

function imagesOf(api: DockerApi, projectId: string): Promise<readonly ListedImage[]> {
  const filters = { label: [`${imageLabels.project}=${projectId}`] };
  return api.call<readonly ListedImage[]>({ path: "/images/json", query: { filters } });
}

/** Returns false if the engine does not answer: a build then fails with that error. */
async function isShortOfSpace(api: DockerApi, floorBytes: number): Promise<boolean> {
  const folder = await api.call<{ readonly DockerRootDir: string }>({ path: "/info" }).then(
    ({ DockerRootDir }) => DockerRootDir,
    () => undefined,
  );
  if (folder === undefined) return false;
  const { bavail, bsize, files, ffree } = await statfs(folder);
  return bavail * bsize < floorBytes || (files > 0 && ffree / files < inodesFloor);
}

// The same share as for the data folder.
const inodesFloor = 0.02;

/** Adds up what each image has alone, and counts once what images share with each other or with other projects. */
async function diskBytes(api: DockerApi, projectId: string): Promise<number> {
  const all = await api.call<{ readonly Images: readonly ListedImage[] }>({ path: "/system/df", timeoutMs: 0 });
  const own = all.Images.filter(({ Labels }) => Labels?.[imageLabels.project] === projectId);
  const shared = own.map(({ SharedSize }) => Math.max(0, SharedSize));
  const alone = own.reduce((sum, { Size, SharedSize }) => sum + Size - Math.max(0, SharedSize), 0);
  return alone + Math.max(0, ...shared);
}

/** Unpacks the source, builds its image and copies it to the engine that runs it. */
async function makeImage(run: BuildRun): Promise<Image> {
  const { options, request, time, folder, log } = run;
  const app = join(folder, "app");
  await mkdir(app);
  const uid = process.getuid?.() ?? 0;
  const ignoresLfs = request.commands?.lfs === "ignore";
  const unpacking = { source: request.source(), folder: app, maxBytes: options.maxSourceBytes, uid, ignoresLfs };
  const tree = await unpackSource({ ...unpacking, signal: time.signal }, log);
  const dockerfile = dockerfileOf(app, request.commands);
  return dockerfile === null ? await fromPlan(run, tree) : await fromDockerfile(run, tree, dockerfile);
}

/** Returns an image of the same layers and settings that carries another project's label. */
async function relabel(api: DockerApi, id: string, projectId: string): Promise<string | null> {
  const image = await findImage(api, id);
  if (image === undefined) return null;
  const [repo, tag] = [`berth/${projectId.toLowerCase()}`, `from-${id.slice(7, 19)}`];
  const known = await findImage(api, `${repo}:${tag}`);
  if (known !== undefined) return known.Id;
  // The engine creates no container without a command; the settings below are those of the image.
  const body = { Image: id, Cmd: ["/berth"], NetworkDisabled: true };
  const { Id: container } = await api.call<{ Id: string }>({ method: "POST", path: "/containers/create", body });
  try {
    const config = { ...image.Config, Labels: { ...image.Config.Labels, [imageLabels.project]: projectId } };
    const made = await api.call<{ Id: string }>({
      ...{ method: "POST", path: "/commit", query: { container, repo, tag, pause: 0 }, body: config },
    });
    return made.Id;
  } finally {
    await api.call({ method: "DELETE", path: `/containers/${container}`, query: { force: 1 } });
  }
}

/** The engines that build: one shared by all organizations, and one for each organization that pulls private images. */
type EngineKeeper = ReturnType<typeof keepEngines>;

interface KeptEngines {
  readonly options: BuildEngineOptions;
  readonly runEngine: DockerApi;
  /** Names of `runEngine`'s images that every Dockerfile may start from; each is copied when a Dockerfile first names it. */
  readonly sharedImages: readonly string[];
  readonly privateRegistries: readonly string[];
}

// An organization's own engine stops this long after its last build; starting it again takes seconds.
const idleMs = 600_000;

/**
 * Creates the keeper of build engines. BuildKit serves a stored manifest or layer to every build that names its digest, without asking the
 * registry again, so what an organization's credentials pulled stays in its own engine, whose files no other organization's build can read.
 */
function keepEngines(kept: KeptEngines) {
  const engines = new Map<string, KeptEngine>();
  const dirOf = (organization: string | null) =>
    organization === null ? kept.options.dir : join(kept.options.dir, "organizations", organization);
  const of = (organization: string | null) => {
    const dir = dirOf(organization);
    const found = engines.get(dir) ?? keepEngine({ ...kept, options: { ...kept.options, dir } }, organization !== null);
    engines.set(dir, found);
    return found;
  };
  return {
    /** Reserves an engine for one build; it starts when the build first asks for it. Null means the shared engine. */
    use: (organization: string | null) => of(organization).use(),
    /** Removes an organization's own engine and what it pulled, unless another build uses it. */
    async forget(organization: string) {
      const dir = dirOf(organization);
      const engine = engines.get(dir);
      if (!existsSync(dir) || engine?.isUsed() === true) return;
      await engine?.stop();
      engines.delete(dir);
      await rm(dir, { recursive: true, force: true });
    },
    async stop() {
      await Promise.all([...engines.values()].map((engine) => engine.stop()));
    },
  };
}

type KeptEngine = ReturnType<typeof keepEngine>;

function keepEngine({ options, runEngine, sharedImages, privateRegistries }: KeptEngines, endsIdle: boolean) {
  let current: Promise<BuildEngine> | undefined;
  let stopping = Promise.resolve();
  let users = 0;
  let timer: NodeJS.Timeout | undefined;
  const begin = () => {
    const starting = start();
    const forget = () => void (current = current === starting ? undefined : current);
    starting.then((engine) => engine.ended.then(forget), forget);
    return starting;
  };
  const start = async () => {
    await stopping;
    return startBuildEngine(options, privateRegistries);
  };
  const copyExclusively = createKeyedMutex();
  const engineFor = async (dockerfile: string) => {
    const engine = await (current ??= begin());
    for (const name of mayStartFrom(dockerfile, sharedImages))
      await copyExclusively(name, () => share(runEngine, engine.api, name));
    return engine;
  };
  const stop = () => {
    clearTimeout(timer);
    const leaving = current?.then(
      (engine) => engine.stop(),
      () => {},
    );
    current = undefined;
    stopping = Promise.all([stopping, leaving]).then(() => {});
    return stopping;
  };
  return {
    stop,
    isUsed: () => users > 0,
    use() {
      users += 1;
      clearTimeout(timer);
      return {
        /** Returns the engine, with the shared images that this Dockerfile may start from. */
        engine: engineFor,
        /** Call it when the build has ended. */
        release() {
          users -= 1;
          if (endsIdle && users === 0) timer = setTimeout(() => void stop(), idleMs).unref();
        },
      };
    },
  };
}

async function share(from: DockerApi, to: DockerApi, name: string): Promise<void> {
  const image = await findImage(from, name);
  if (image === undefined || (await findImage(to, name))?.Id === image.Id) return;
  await copyImage(from, to, name);
}
