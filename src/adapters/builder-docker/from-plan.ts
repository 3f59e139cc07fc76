import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { BuildLog } from "../../building/build-log.ts";
import { chooseStart, makesWhatStarts, needsTree } from "../../building/choose-start.ts";
import { listedFiles as filesOf } from "../../building/listed-files.ts";
import { sourceWarnings } from "../../building/source-warnings.ts";
import { besideApp, siteCommand, siteServerFile } from "../../building/site-server.ts";
import { detect, type Detected } from "../../detection/detect.ts";
import { planBuild } from "../../detection/plan-build.ts";
import type { BuildPlan, BuiltFiles, Start } from "../../detection/plan.ts";
import { requireCommands } from "../../detection/procfile.ts";
import type { SourceTree } from "../../detection/source-tree.ts";
import type { DockerApi } from "../../kit/docker-api.ts";
import type { Image } from "../../ports/builder.ts";
import type { ContainerManifest } from "../../ports/image-labels.ts";
import type { BuildRun } from "./build-run.ts";
import { cacheScope, scopeOfVariables } from "./cache-scope.ts";
import type { DockerBuilderOptions } from "./options.ts";
import { generateDockerfile, listingFile, listingStage, releaseStage, type Generated } from "./generate-dockerfile.ts";
import { performBuild } from "./perform-build.ts";
import { keepIfFits, publishImage, removeFrom } from "./publish-image.ts";

/** Builds the image from a Dockerfile generated from what detection finds. */
export async function fromPlan(run: BuildRun, tree: SourceTree): Promise<Image> {
  const { log, folder, options, request } = run;
  const detected = detect(tree, request.commands);
  const plan = planBuild(detected, tree, machineOf(options));
  announce(log, detected, plan);
  for (const warning of sourceWarnings(tree)) log.detail(warning);
  await copyFile(siteServerFile, join(folder, "static-server.mjs"));
  const scope = await cacheScope(run.scopesDir, request.project_id);
  const planned: Planned = { run, tree, detected, plan, scope };
  const decided = makesWhatStarts(plan) ? await afterBuilding(planned) : decideStart(planned, filesOf(tree.paths));
  const generated = generate(planned, decided);
  const manifest = manifestOf(planned, decided);
  const { id, engine } = await buildGenerated(planned, { generated, target: releaseStage, manifest });
  return publishImage(run, engine, { image: await keepIfFits(run, engine, id), manifest });
}

interface Planned {
  readonly run: BuildRun;
  readonly tree: SourceTree;
  readonly detected: Detected;
  readonly plan: BuildPlan;
  readonly scope: string;
}

export function machineOf({ parents }: DockerBuilderOptions) {
  const version = (name: string) => /:v?(\d+(?:\.\d+)*)/.exec(name)?.[1];
  const python = { interpreter: "python3", version: semverLike(version(parents.python) ?? "3.11"), settings: "" };
  const versions = {
    go: version(parents.go) ?? "of the image",
    rust: version(parents.rust) ?? "of the image",
    ...ofImages(parents),
  };
  const jdks = [{ version: version(parents.java) ?? "21", folder: "", home: null }];
  return { python, versions, java: { jdks, tools: { maven: true, gradle: false } }, home: "/app" };
}

/** Tags of Composer's images name Composer's version, so their PHP version is not known in advance. */
function ofImages(parents: DockerBuilderOptions["parents"]) {
  const [, ruby = "3.4"] = /:(\d+\.\d+)/.exec(parents.ruby) ?? [];
  return { ruby, php: "8.4", composer: "2" };
}

const semverLike = (version: string): string => [...version.split("."), "0", "0"].slice(0, 3).join(".");

function announce(log: BuildLog, { procfile }: Detected, plan: BuildPlan): void {
  log.step(`${plan.name} detected`);
  for (const note of plan.notes) log.detail(note);
  if (procfile.web !== null) log.detail(`The web command comes from the Procfile: ${procfile.web}`);
  for (const [type, command] of Object.entries(procfile.others))
    log.detail(`The Procfile's process type ${type}: ${command}`);
}

/** `start` is null if there is no web process, or while it is not decided. */
interface DecidedStart {
  readonly start: Start | null;
}

function decideStart({ run, detected, plan }: Planned, files: BuiltFiles): DecidedStart {
  return { start: chooseStart(run.log, { detected, plan, files }) };
}

/** Builds without a start command, lists the files and decides by them. The second build takes everything from the cache. */
async function afterBuilding(planned: Planned): Promise<DecidedStart> {
  const generated = generate(planned, { start: null });
  const { id, engine } = await buildGenerated(planned, { generated, target: listingStage, manifest: null });
  try {
    const files = filesOf(await listedFiles(engine.api, id));
    requireCommands(planned.detected.procfile, files.mayExist, "build");
    return decideStart(planned, files);
  } finally {
    await removeFrom(engine.api, id);
  }
}

async function listedFiles(api: DockerApi, image: string): Promise<string[]> {
  const body = { Image: image, Cmd: ["true"], NetworkDisabled: true };
  const { Id } = await api.call<{ Id: string }>({ method: "POST", path: "/containers/create", body });
  try {
    const tar = await text(await api.stream({ path: `/containers/${Id}/archive`, query: { path: listingFile } }));
    // The archive holds one file: after a header of 512 bytes, with the size in octal at offset 124.
    const size = Number.parseInt(tar.slice(124, 135), 8);
    const lines = Buffer.from(tar)
      .toString("utf8", 512, 512 + size)
      .split("\n");
    return lines.filter(Boolean).map((line) => line.replace(/^\.\//, ""));
  } finally {
    await api.call({ method: "DELETE", path: `/containers/${Id}`, query: { force: 1 } });
  }
}

function generate(planned: Planned, { start }: DecidedStart): Generated {
  const { run, tree, detected, plan } = planned;
  return generateDockerfile({
    ...{ plan, start, parents: run.options.parents, installFiles: installFiles(plan, tree) },
    ...{ isWhole: needsTree(detected), member: detected.member, certificates: run.options.certificates !== null },
  });
}

const installInputs =
  /^(?:package\.json|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|\.npmrc|\.yarnrc|\.yarnrc\.yml|requirements[^/]*\.txt)$/;

/** Returns the files that determine what is installed, so that a change to other files reuses the install. Empty if the install depends on more. */
function installFiles({ kind, install }: BuildPlan, tree: SourceTree): string[] {
  // Deno installs what the modules of the source import.
  if (kind === "deno") return [];
  const isDecided = (install?.inputs ?? null) !== null && install?.again.length === 0;
  if (!isDecided) return [];
  return tree.paths.filter((path) => installInputs.test(path));
}

function manifestOf({ run, detected, plan }: Planned, { start }: DecidedStart): ContainerManifest {
  const { release, others } = detected.procfile;
  const isStatic = start?.how === "static";
  const web = isStatic ? siteCommand(start, needsTree(detected) ? besideApp : undefined) : (start?.command ?? null);
  return {
    ...{ format: 1, kind: isStatic ? "static" : plan.kind, web_command: web, uses_own_command: false },
    ...{ processes: others, release_command: release, storage: run.request.commands?.storage ?? null },
  };
}

interface GeneratedBuild {
  readonly generated: Generated;
  readonly target: string;
  readonly manifest: ContainerManifest | null;
}

async function buildGenerated({ run, scope }: Planned, { generated, target, manifest }: GeneratedBuild) {
  const { env } = run.request;
  const engine = await run.time.race(run.engine(generated.text));
  const id = await performBuild(run, engine, {
    ...{ folder: run.folder, text: generated.text, target, manifest, args: {}, cacheScope: scope, generated },
    scope: scopeOfVariables(scope, env),
  });
  return { id, engine };
}
