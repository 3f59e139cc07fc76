import { BuildRefused } from "../../detection/failures.ts";
import type { DockerApi } from "../../kit/docker-api.ts";
import type { Image } from "../../ports/builder.ts";
import type { ContainerManifest } from "../../ports/image-labels.ts";
import type { BuildEngine } from "./build-engine.ts";
import type { BuildRun } from "./build-run.ts";
import { copyImage, findImage, type EngineImage } from "./move-image.ts";

interface Publishing {
  readonly image: EngineImage;
  readonly manifest: ContainerManifest;
}

/** Gives the image to the engine that runs it, under a name that keeps an operator's clean-up from it. */
export async function publishImage(
  run: BuildRun,
  engine: BuildEngine,
  { image, manifest }: Publishing,
): Promise<Image> {
  const { runEngine, request, time, log } = run;
  const { Id: id, Size: size } = image;
  if ((await findImage(runEngine, id)) === undefined) await copyImage(engine.api, runEngine, id, time.signal);
  const [short, repo] = [id.slice(7, 19), `berth/${request.project_id.toLowerCase()}`];
  await runEngine.call({ method: "POST", path: `/images/${id}/tag`, query: { repo, tag: short } });
  await removeFrom(engine.api, id);
  time.check();
  log.step(`Image ${short}, ${(size / 1024 / 1024).toFixed(1)} MiB`);
  const { kind, web_command, processes, release_command } = manifest;
  return { image_ref: id, kind, web_command, processes, release_command, size_bytes: size };
}

/** Looks at an image that was just built, and refuses one that is too large. */
export async function keepIfFits({ options }: BuildRun, engine: BuildEngine, id: string): Promise<EngineImage> {
  const image = await findImage(engine.api, id);
  if (image === undefined) throw new Error("the image that was just built is gone");
  if (image.Size <= options.maxImageBytes) return image;
  await removeFrom(engine.api, id);
  const summary = `The image has more than ${Math.round(options.maxImageBytes / 1024 / 1024)} MiB.`;
  throw new BuildRefused("build_output_too_large", { summary });
}

/** Its layers stay in the build cache; no Dockerfile can start from it. */
export async function removeFrom(api: DockerApi, id: string): Promise<void> {
  await api.call({ method: "DELETE", path: `/images/${id}`, query: { force: 1 } }).catch(() => {});
}
