import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { createBuildLog } from "../../building/build-log.ts";
import { limitTime } from "../../building/time-limit.ts";
import { BuildRefused, toFailure } from "../../detection/failures.ts";
import { openDockerApi, type DockerApi } from "../../kit/docker-api.ts";
import type { Builder, BuildOutcome, BuildRequest } from "../../ports/builder.ts";
import { imageLabels } from "../../ports/image-labels.ts";
import type { BuildRun } from "./build-run.ts";
import { forgetCacheScope } from "./cache-scope.ts";
import { keepEngine } from "./engine-keeper.ts";
import { makeImage } from "./make-image.ts";
import type { DockerBuilderOptions } from "./options.ts";

export type { DockerBuilderOptions } from "./options.ts";

export interface DockerBuilder extends Builder {
  settle(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Builds images for a Docker engine: by the source's Dockerfile, else by one that is made from what detection finds. They are built in an
 * engine of their own and copied to the one that runs them.
 */
export async function createDockerBuilder(options: DockerBuilderOptions): Promise<DockerBuilder> {
  const { runSocket, buildsDir, engine, parents, sharedImages } = options;
  await mkdir(buildsDir, { recursive: true, mode: 0o755 });
  for (const name of await readdir(buildsDir)) await rm(join(buildsDir, name), { recursive: true, force: true });
  const runEngine = openDockerApi(runSocket);
  const keeper = keepEngine(engine, runEngine, [
    ...new Set([...Object.values<string>({ ...parents }), ...sharedImages]),
  ]);
  const scopesDir = join(engine.dir, "scopes");
  return {
    build: (request) => build({ options, runEngine, keeper, scopesDir }, request),
    images: async (id) => (await imagesOf(runEngine, id)).map(({ Id }) => Id),
    diskBytes: (id) => diskBytes(runEngine, id),
    clearCaches: (id) => forgetCacheScope(scopesDir, id),
    settle: async () => {},
    async close() {
      await keeper.stop();
      runEngine.close();
    },
  };
}

async function build(
  shared: Omit<BuildRun, "request" | "log" | "time" | "folder">,
  request: BuildRequest,
): Promise<BuildOutcome> {
  const log = createBuildLog(request.onLine, request.secrets);
  const time = limitTime(request);
  const folder = join(shared.options.buildsDir, request.build_id);
  try {
    time.check();
    await mkdir(folder, { mode: 0o700 });
    return { outcome: "built", image: await makeImage({ ...shared, request, log, time, folder }) };
  } catch (error) {
    if (request.signal.aborted) {
      log.error("The build was cancelled.");
      return { outcome: "cancelled" };
    }
    const failure = toFailure(refusalIn(error, time.check), log.tail(), log.redact);
    log.error(failure.summary);
    log.error(failure.hint);
    return { outcome: "failed", failure };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Throws what is the machine's fault. */
function refusalIn(error: unknown, checkTime: () => void): BuildRefused {
  if (error instanceof BuildRefused) return error;
  try {
    checkTime();
  } catch (late) {
    if (late instanceof BuildRefused) return late;
  }
  throw error;
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

/** What only one of its images has, and once what they share with each other or with other projects. */
async function diskBytes(api: DockerApi, projectId: string): Promise<number> {
  const all = await api.call<{ readonly Images: readonly ListedImage[] }>({ path: "/system/df", timeoutMs: 0 });
  const own = all.Images.filter(({ Labels }) => Labels?.[imageLabels.project] === projectId);
  const shared = own.map(({ SharedSize }) => Math.max(0, SharedSize));
  const alone = own.reduce((sum, { Size, SharedSize }) => sum + Size - Math.max(0, SharedSize), 0);
  return alone + Math.max(0, ...shared);
}
