import { BuildRefused } from "../../detection/failures.ts";
import type { DockerApi } from "../../kit/docker-api.ts";
import type { Image } from "../../ports/builder.ts";
import { imageLabels, type ContainerManifest } from "../../ports/image-labels.ts";
import type { BuildEngine } from "./build-engine.ts";
import type { BuildRun } from "./build-run.ts";
import { findImage, giveImage, type EngineImage } from "./move-image.ts";

interface Publishing {
  readonly image: EngineImage;
  readonly manifest: ContainerManifest;
}

/** Copies the image to the engine that runs it and tags it there, which protects it from an operator's `docker image prune`. */
export async function publishImage(
  run: BuildRun,
  engine: BuildEngine,
  { image, manifest }: Publishing,
): Promise<Image> {
  const { runEngine, request, time, log } = run;
  const { Id: id, Size: size } = image;
  if ((await findImage(runEngine, id)) === undefined) await give(run, engine, id);
  const [short, repo] = [id.slice(7, 19), `berth/${request.project_id.toLowerCase()}`];
  await runEngine.call({ method: "POST", path: `/images/${id}/tag`, query: { repo, tag: short } });
  await removeFrom(engine.api, id);
  time.check();
  log.step(`Image ${short}, ${(size / 1024 / 1024).toFixed(1)} MiB`);
  const { kind, web_command, processes, release_command } = manifest;
  return { image_ref: id, kind, web_command, processes, release_command, size_bytes: size };
}

/** Inspects an image that was just built; removes and refuses one that is too large or for another platform. */
export async function keepIfFits({ options }: BuildRun, engine: BuildEngine, id: string): Promise<EngineImage> {
  const image = await findImage(engine.api, id);
  if (image === undefined) throw new Error("the image that was just built is gone");
  const problem = problemOf(image, options);
  if (problem === null) return image;
  await removeFrom(engine.api, id);
  throw problem;
}

function problemOf(image: EngineImage, options: BuildRun["options"]): BuildRefused | null {
  if (isForeign(image)) return foreignImage(image);
  if (image.Size > options.maxImageBytes) return tooLarge(options);
  const label = Object.keys(image.Config.Labels ?? {}).find((name) => name.startsWith("berth.") && !own.has(name));
  return label === undefined ? null : reservedLabel(label);
}

const own: ReadonlySet<string> = new Set(Object.values(imageLabels));

/** An engine gives a container its image's labels, too, and Berth knows containers by theirs. */
function reservedLabel(label: string): BuildRefused {
  const summary = `The image has the label ${label.slice(0, 100)}. Labels that begin with \`berth.\` are Berth's own.`;
  return new BuildRefused("dockerfile_invalid", { summary, hint: "Name it differently, or start from another image." });
}

const architectures: Readonly<Record<string, string>> = { x64: "amd64", arm: "arm", arm64: "arm64", ppc64: "ppc64le" };

/** Returns whether this machine cannot run the image. */
function isForeign({ Architecture: architecture, Os: system }: EngineImage): boolean {
  const own = architectures[process.arch];
  return (system !== "" && system !== "linux") || (architecture !== "" && own !== undefined && architecture !== own);
}

function foreignImage({ Architecture: architecture, Os: system }: EngineImage): BuildRefused {
  const own = architectures[process.arch] ?? process.arch;
  const summary = `The image is for ${system}/${architecture}. This machine runs linux/${own}.`;
  return new BuildRefused("image_platform_mismatch", { summary });
}

function tooLarge(options: BuildRun["options"]): BuildRefused {
  const summary = `The image has more than ${Math.round(options.maxImageBytes / 1024 / 1024)} MiB.`;
  return new BuildRefused("build_output_too_large", { summary });
}

/** Copies the image; most of its layers belong to the base image or the project's latest images and are already there. */
async function give({ options, runEngine, request, time }: BuildRun, engine: BuildEngine, id: string): Promise<void> {
  const filters = { label: [`${imageLabels.project}=${request.project_id}`] };
  const own = await runEngine.call<readonly { Id: string }[]>({ path: "/images/json", query: { filters } });
  const relatives = [
    ...Object.values<string>({ ...options.parents }),
    ...options.sharedImages,
    ...own.map(({ Id }) => Id).slice(0, 10),
  ];
  const { api, dataRoot } = engine;
  await giveImage(id, { from: api, dataRoot, to: runEngine, relatives, signal: time.signal });
}

/** Removes an image. Its layers stay in the build cache, but no Dockerfile can start from it. */
export async function removeFrom(api: DockerApi, id: string): Promise<void> {
  await api.call({ method: "DELETE", path: `/images/${id}`, query: { force: 1 } }).catch(() => {});
}
