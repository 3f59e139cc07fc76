import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isPlain } from "../../building/is-plain.ts";
import { sourceWarnings } from "../../building/source-warnings.ts";
import { BuildRefused } from "../../detection/failures.ts";
import { parseProcfile, withCommands, type Procfile } from "../../detection/procfile.ts";
import type { SourceTree } from "../../detection/source-tree.ts";
import type { BuildCommands, Image, PlannedBuild } from "../../ports/builder.ts";
import type { ContainerManifest } from "../../ports/image-labels.ts";
import { dockerfileName, type BuildRun } from "./build-run.ts";
import { cacheScope, scopeOfVariables } from "./cache-scope.ts";
import { heredocsFolder } from "./heredocs.ts";
import { readDockerfile, type Dockerfile } from "./read-dockerfile.ts";
import { readDockerignore, removeIgnored } from "./dockerignore.ts";
import { secretIds } from "./generate-dockerfile.ts";
import { quoted } from "../../kit/quoted.ts";
import { describeImage, exposedPort } from "./image-notes.ts";
import type { EngineImage } from "./move-image.ts";
import { performBuild } from "./perform-build.ts";
import { keepIfFits, publishImage } from "./publish-image.ts";

export async function fromDockerfile(run: BuildRun, tree: SourceTree, path: string): Promise<Image> {
  const { log, folder, request } = run;
  const { commands = {} } = request;
  const app = join(folder, "app");
  const procfile = procfileOf(tree, commands);
  const { web, release, others } = procfile;
  log.step(path === dockerfileName ? "Dockerfile detected" : `Dockerfile ${path}`);
  const source = await readFile(join(app, path), "utf8");
  const { args: named, notes } = readDockerfile(source);
  for (const note of [...notes, ...sourceWarnings(tree)]) log.detail(note);
  if (web !== null) log.detail(`The web command comes from the Procfile or berth.json: ${web}`);
  await leaveOutIgnored(app, path);
  const declared = named.filter((name) => request.env[name] !== undefined);
  if (declared.length > 0)
    log.detail(`Variables that ARG names: ${declared.join(", ")}. Their values stay in the image's history.`);
  const scope = await cacheScope(run.scopesDir, request.project_id);
  const args = Object.fromEntries(declared.map((name) => [name, request.env[name] as string]));
  const manifest: ContainerManifest = {
    ...{ format: 1, kind: "dockerfile", web_command: web ?? "the image's own command", uses_own_command: web === null },
    ...{ processes: others, release_command: release, storage: commands.storage ?? null },
  };
  const engine = await run.time.race(run.engine(source));
  const dockerfile = readDockerfile(source, engine);
  const { text, target } = withSettings(dockerfile, commands, scopeOfVariables(scope, request.env));
  await addHeredocs(app, dockerfile);
  const performed = { folder: app, text, ...(target === undefined ? {} : { target }), args, scope };
  const id = await performBuild(run, engine, { ...performed, manifest, read: dockerfile });
  const image = await keepIfFits(run, engine, id);
  const own = commandOf(image);
  if (web === null && own === null) throw new BuildRefused("no_start_command", ownCommandMissing);
  refuseHidden(image, commands);
  for (const note of describeImage(image, procfile, commands)) log.detail(note);
  const published = await publishImage(run, engine, { image, manifest: { ...manifest, web_command: web ?? own } });
  const port = exposedPort(image);
  const start_seconds = startSeconds(image);
  return { ...published, ...(port !== undefined && { port }), ...(start_seconds > 0 && { start_seconds }) };
}

/** Returns the path of the source's Dockerfile; null if it has none. */
export function dockerfileOf(app: string, { dockerfile, member }: BuildCommands = {}): string | null {
  if (member !== undefined) return null;
  if (isPlain(app, dockerfile ?? dockerfileName, "file")) return dockerfile ?? dockerfileName;
  if (dockerfile === undefined) return null;
  const summary = `berth.json names the Dockerfile ${dockerfile}, which is not in the repository.`;
  throw new BuildRefused("dockerfile_invalid", { summary, hint: "Correct `dockerfile` in berth.json, or commit it." });
}

/** Refuses a persistent folder that would hide the application itself, or in part be a VOLUME, which does not last. */
function refuseHidden({ Config }: EngineImage, { storage }: BuildCommands): void {
  if (storage === undefined) return;
  const volume = Object.keys(Config.Volumes ?? {}).find(
    (path) => path.startsWith(`${storage}/`) && path !== `${storage}/`,
  );
  const hidden = `${Config.WorkingDir ?? ""}/`.startsWith(`${storage}/`)
    ? `it would hide the image's WORKDIR`
    : undefined;
  const why = hidden ?? (volume === undefined ? undefined : `the image's VOLUME ${volume} lies in it`);
  if (why === undefined) return;
  const summary = `The persistent folder cannot be mounted at ${storage}, as berth.json's \`storage\` asks: ${why}.`;
  throw new BuildRefused("storage_path_unusable", { summary });
}

const procfileOf = (tree: SourceTree, commands: BuildCommands): Procfile =>
  withCommands(parseProcfile(tree.text("Procfile") ?? ""), commands);

/** Adds what berth.json says: which stage to build, and a command that runs in the finished image with the project's variables. */
function withSettings({ text, stages }: Dockerfile, { target, build }: BuildCommands, variables: string) {
  if (target !== undefined && !stages.includes(target.toLowerCase())) throw unknownTarget(target, stages);
  if (build === undefined) return { text, target };
  const mount = `--mount=type=secret,id=${secretIds.env},target=/run/berth/env,mode=0444`;
  // The last word makes the command run again once a variable has changed.
  const words = ["/bin/sh", "-c", `. /run/berth/env\n${build}`, variables];
  const stage = target === undefined ? [] : [`FROM ${target} AS ${ownStage}`];
  const lines = [text, ...stage, `RUN ${mount} ${JSON.stringify(words)}`, ""];
  return { text: lines.join("\n"), target: target === undefined ? undefined : ownStage };
}

const ownStage = "berth-build";

function unknownTarget(target: string, stages: readonly string[]): BuildRefused {
  const known = stages.length === 0 ? "It names no stage" : `Its stages: ${stages.slice(0, 10).join(", ")}`;
  const summary = `berth.json's \`target\` is ${target}, which is no stage of the Dockerfile. ${known}.`;
  return new BuildRefused("dockerfile_invalid", { summary, hint: "Correct `target` in berth.json, or leave it out." });
}

async function addHeredocs(app: string, { files }: Dockerfile): Promise<void> {
  if (files.length > 0) await rm(join(app, heredocsFolder), { recursive: true, force: true });
  for (const { path, content } of files) {
    await mkdir(dirname(join(app, path)), { recursive: true });
    await writeFile(join(app, path), content, { flag: "wx" });
  }
}

/** Returns what a build from the source's Dockerfile does; null if there is no Dockerfile. */
export async function planDockerfile(
  app: string,
  tree: SourceTree,
  commands: BuildCommands = {},
): Promise<PlannedBuild | null> {
  const path = dockerfileOf(app, commands);
  if (path === null) return null;
  const { web, release, others } = procfileOf(tree, commands);
  const { notes, stages } = readDockerfile(await readFile(join(app, path), "utf8"));
  const { build, target } = commands;
  if (target !== undefined && !stages.includes(target.toLowerCase())) throw unknownTarget(target, stages);
  const shown = [
    target === undefined ? path : `${path}, up to the stage ${target}`,
    ...(build === undefined ? [] : [build]),
  ];
  return {
    ...{ kind: "dockerfile", name: "Dockerfile", uses_dockerfile: true, tools: [], notes },
    steps: shown.map((command) => ({ stage: "build", command })),
    web: { command: web, because: web === null ? "the image's own command" : "the Procfile or berth.json" },
    ...{ processes: others, release_command: release },
  };
}

/** Removes what the Dockerfile's own `.dockerignore`, else that of the source excludes. */
async function leaveOutIgnored(app: string, dockerfile: string): Promise<void> {
  const name = [`${dockerfile}.dockerignore`, ".dockerignore"].find((each) => isPlain(app, each, "file"));
  if (name === undefined) return;
  await removeIgnored(app, readDockerignore(await readFile(join(app, name), "utf8")));
}

const ownCommandMissing = {
  summary: "The image has neither ENTRYPOINT nor CMD.",
  hint: "Add a `CMD` to the Dockerfile, a Procfile with `web: <command>`, or `start` to berth.json.",
};

/** Returns an image's command as a shell line; null if it has none. */
function commandOf({ Config }: EngineImage): string | null {
  const words = [...(Config.Entrypoint ?? []), ...(Config.Cmd ?? [])];
  if (words.length === 0) return null;
  return words.length === 3 && words[0] === "/bin/sh" && words[1] === "-c"
    ? (words[2] as string)
    : words.map(quoted).join(" ");
}

// As the project's own setting.
const longestStartSeconds = 900;

/** Returns the start period of HEALTHCHECK, which the engine stores in nanoseconds; 0 without one. */
function startSeconds({ Config }: EngineImage): number {
  return Math.min(Math.ceil((Config.Healthcheck?.StartPeriod ?? 0) / 1e9), longestStartSeconds);
}
