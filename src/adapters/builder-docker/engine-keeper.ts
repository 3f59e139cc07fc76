import type { DockerApi } from "../../kit/docker-api.ts";
import { startBuildEngine, type BuildEngine, type BuildEngineOptions } from "./build-engine.ts";
import { copyImage, findImage } from "./move-image.ts";

export interface EngineKeeper {
  /** The engine that builds, started by the first build and again when it has ended. */
  engine(): Promise<BuildEngine>;
  stop(): Promise<void>;
}

/** `sharedImages` are names of images of `runEngine` that every Dockerfile may start from; those that exist there are copied at each start. */
export function keepEngine(
  options: BuildEngineOptions,
  runEngine: DockerApi,
  sharedImages: readonly string[],
): EngineKeeper {
  let current: Promise<BuildEngine> | undefined;
  const begin = async () => {
    const engine = await startBuildEngine(options);
    void engine.ended.then(() => (current = undefined));
    for (const name of sharedImages) await share(runEngine, engine.api, name);
    return engine;
  };
  return {
    engine() {
      const started = (current ??= begin());
      started.catch(() => (current = undefined));
      return started;
    },
    async stop() {
      const engine = await current?.catch(() => undefined);
      await engine?.stop();
    },
  };
}

async function share(from: DockerApi, to: DockerApi, name: string): Promise<void> {
  const image = await findImage(from, name);
  if (image === undefined || (await findImage(to, name))?.Id === image.Id) return;
  await copyImage(from, to, name);
}
