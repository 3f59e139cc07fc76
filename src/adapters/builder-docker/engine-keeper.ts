import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { DockerApi } from "../../kit/docker-api.ts";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { startBuildEngine, type BuildEngine, type BuildEngineOptions } from "./build-engine.ts";
import { copyImage, findImage } from "./move-image.ts";
import { mayStartFrom } from "./read-dockerfile.ts";

/** The engines that build: one shared by all organizations, and one for each organization that pulls private images. */
export type EngineKeeper = ReturnType<typeof keepEngines>;

export interface KeptEngines {
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
export function keepEngines(kept: KeptEngines) {
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
