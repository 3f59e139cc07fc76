import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { createBuildLog, type BuildLog } from "../../building/build-log.ts";
import { builtFiles } from "../../building/built-files.ts";
import { chooseStart, needsTree } from "../../building/choose-start.ts";
import { outcomeOfError } from "../../building/outcome-of-error.ts";
import { planSource, type Planner } from "../../building/plan-source.ts";
import { siteCommand } from "../../building/site-server.ts";
import { sourceWarnings } from "../../building/source-warnings.ts";
import { makeStoragePlace } from "../../building/storage-place.ts";
import { limitTime, type TimeLimit } from "../../building/time-limit.ts";
import { unpackSource } from "../../building/unpack.ts";
import { watchDisk } from "../../building/watch-disk.ts";
import { detect, type Detected } from "../../detection/detect.ts";
import { BuildRefused } from "../../detection/failures.ts";
import { planBuild } from "../../detection/plan-build.ts";
import type { BuildPlan, Start } from "../../detection/plan.ts";
import { requireCommands } from "../../detection/procfile.ts";
import type { SourceTree } from "../../detection/source-tree.ts";
import { folderBytes, folderBytesNow } from "../../kit/folder-bytes.ts";
import { silentLog } from "../../kit/log.ts";
import type { BuildOutcome, BuildRequest, Builder, Image } from "../../ports/builder.ts";
import {
  defaultBuildDiskBytes,
  defaultCacheLimitBytes,
  defaultImageLimits,
  defaultMaxSourceBytes,
  type ProcessBuilderOptions,
} from "./options.ts";
import { adopt } from "./release/adopt.ts";
import { TreeTooLarge } from "./release/hash-root.ts";
import { startHashing, type Hashing } from "./release/hash-tree.ts";
import { addSiteServer, hasItsTools, makeSite, publish } from "./release/publish.ts";
import { finishInstall, installAndBuild, nothingKnown, type Finished } from "./steps/install-and-build.ts";
import type { InstallContext } from "./steps/install-context.ts";
import { buildSandboxId } from "./steps/run-step.ts";
import { openSpares, type Spares } from "./steps/spares.ts";
import { openTrash, type Trash } from "./steps/trash.ts";
import {
  foldersOf,
  home,
  isBelowTmp,
  makeBelowTmp,
  makeWorkspace,
  type Workspace,
  type WorkspacePlaces,
} from "./steps/workspace.ts";
import { compiledCode, type CompiledCode } from "./tools/compiled-code.ts";
import { openInstallStore, type InstallStore } from "./tools/install-store.ts";
import { openPackageStore, type PackageStore } from "./tools/package-store.ts";
import { machineFor, provideTools, type ProvidedTools } from "./tools/provide-tools.ts";

export type { ProcessBuilderOptions } from "./options.ts";

export interface ProcessBuilder extends Builder {
  /** Resolves when the work after builds is done: folders and networks are removed, and reusable results kept. */
  settle(): Promise<void>;
  /** Cancels the work after builds, and resolves when none of it runs any more. */
  close(): Promise<void>;
}

/**
 * Creates a builder of images for the process runtime: folders with the application's files, its dependencies and a manifest. First removes
 * what builds of an earlier process left behind. Only one builder may use the same folders.
 */
export async function createProcessBuilder(options: ProcessBuilderOptions): Promise<ProcessBuilder> {
  for (const folder of [options.releasesDir, options.buildsDir, options.cachesDir, options.toolsDir]) {
    await mkdir(folder, { recursive: true, mode: 0o755 });
  }
  const trash = await openTrash(join(options.buildsDir, trashName));
  await sweepLeftovers(options, trash);
  const upkeep = createUpkeep();
  const spares = await openSpares(options.cachesDir, trash);
  const packages = await openPackageStore(join(options.toolsDir, "packages"), trash);
  const { sandbox, uidBase, sharesInstalls = true, log = silentLog } = options;
  const storeFolder = join(options.toolsDir, "installs");
  if (!sharesInstalls) await trash.discard(storeFolder);
  const installStore = sharesInstalls ? await openInstallStore({ folder: storeFolder, trash }) : null;
  const code = compiledCode({ folder: join(options.toolsDir, "compiled-code"), sandbox, uid: uidBase, log });
  const disks = new Map<string, () => Promise<number | null>>();
  return {
    build: (request) => build(options, request, { upkeep, spares, trash, packages, installStore, code, disks }),
    plan: (request) => planSource(request, plannerOf(options)),
    images: async (projectId, only) => {
      const folder = join(options.releasesDir, projectId);
      const names = (await readdir(folder).catch(() => [])).filter((name) => /^[0-9a-f]{64}$/.test(name));
      const runs = await Promise.all(names.map(async (name) => only === undefined || hasItsTools(join(folder, name))));
      return names.filter((_, index) => runs[index]).map((name) => `sha256:${name}`);
    },
    adopt: (image, to) => adopt(options, image, { id: to.project_id, uid: options.uidBase + to.project_number }),
    diskBytes: (id) => folderBytes(join(options.releasesDir, id), join(options.cachesDir, id)),
    // Images are on the data folder's disk, which the platform monitors.
    isShortOfSpace: async () => false,
    takenBytes: async (buildId) => (await disks.get(buildId)?.()) ?? null,
    clearCaches: (id) => trash.discard(join(options.cachesDir, id)),
    settle: async () => {
      await upkeep.all();
      await code.settle();
      await trash.settle();
    },
    close: async () => void (await Promise.all([upkeep.stop(), code.stop(), trash.stop()])),
  };
}

const plannerOf = (options: ProcessBuilderOptions): Planner => ({
  folder: options.buildsDir,
  maxSourceBytes: options.maxSourceBytes ?? defaultMaxSourceBytes,
  machineFor: (kind) => machineFor(options, kind),
  nodeVersion: process.version.slice(1),
  planOwn: async () => null,
});

const trashName = ".trash";

async function sweepLeftovers(options: ProcessBuilderOptions, trash: Trash): Promise<void> {
  const left = await options.sandbox.sweep("build", []);
  if (left.length > 0) options.log?.warn({ sandboxes: left }, "could not remove what a crash left of builds");
  for (const name of await readdir(options.buildsDir))
    if (name !== trashName) await trash.discard(join(options.buildsDir, name));
}

interface Shared {
  readonly upkeep: Upkeep;
  readonly spares: Spares;
  readonly trash: Trash;
  readonly packages: PackageStore;
  readonly installStore: InstallStore | null;
  readonly code: CompiledCode;
  /** Measure how much disk the running builds use, by their ids. */
  readonly disks: Map<string, () => Promise<number | null>>;
}

/** A build in progress: what its stages share. */
interface Run extends Shared {
  readonly options: ProcessBuilderOptions;
  readonly request: BuildRequest;
  readonly log: BuildLog;
  readonly time: TimeLimit;
  readonly workspace: Workspace;
  readonly projectCacheDir: string;
  readonly hashing: Hashing;
  /** Work to do after the build has ended. */
  readonly after: (() => Promise<void>)[];
}

async function build(options: ProcessBuilderOptions, request: BuildRequest, shared: Shared): Promise<BuildOutcome> {
  const log = createBuildLog(request.onLine, request.secrets);
  const folders = foldersOf(placesOf(options, request));
  const measure = () => folderBytesNow(...folders);
  const disk = watchDisk({
    disk: options.buildsDir,
    measure,
    limitBytes: options.buildDiskBytes ?? defaultBuildDiskBytes,
  });
  shared.disks.set(request.build_id, measure);
  const time = limitTime(request, disk.signal);
  const hashing = startHashing(time.signal);
  const after: (() => Promise<void>)[] = [];
  try {
    time.check();
    await time.race(shared.upkeep.of(request.project_id));
    const projectCacheDir = join(options.cachesDir, request.project_id);
    const workspace = await openWorkspace(options, request, shared.trash);
    after.push(
      () => options.sandbox.remove(buildSandboxId(request.build_id)),
      () => shared.trash.discard(workspace.root),
      () => keepCachesSmall(options, workspace.cache, shared.trash),
    );
    const run = { ...shared, options, request, log, time, workspace, projectCacheDir, hashing, after };
    return { outcome: "built", image: await makeImage(run) };
  } catch (error) {
    return outcomeOfError(error instanceof TreeTooLarge ? outputTooLarge(error) : error, { request, log, time });
  } finally {
    hashing.stop();
    disk.stop();
    shared.disks.delete(request.build_id);
    shared.upkeep.begin(request.project_id, after);
  }
}

/** Deletes a cache that exceeds its limit: Cargo, for one, adds to its cache with each set of dependencies and never removes anything. */
async function keepCachesSmall(options: ProcessBuilderOptions, folder: string, trash: Trash): Promise<void> {
  const bytes = await folderBytes(folder);
  if (bytes !== null && bytes > (options.cacheLimitBytes ?? defaultCacheLimitBytes)) await trash.discard(folder);
}

function placesOf(
  { buildsDir, cachesDir }: ProcessBuilderOptions,
  { build_id, project_id }: BuildRequest,
): WorkspacePlaces {
  return { buildsDir, projectCacheDir: join(cachesDir, project_id), buildId: build_id };
}

function openWorkspace(options: ProcessBuilderOptions, request: BuildRequest, trash: Trash): Promise<Workspace> {
  const uid = options.uidBase + request.project_number;
  return makeWorkspace({ ...placesOf(options, request), uid, hostUid: options.sandbox.hostUid(uid) }, trash);
}

function outputTooLarge({ what, limits }: TreeTooLarge): BuildRefused {
  const summaries = {
    bytes: `The build left files of more than ${Math.round(limits.bytes / 1024 / 1024)} MiB.`,
    entries: `The build left more than ${limits.entries} files and folders.`,
    path: "The build left a path that is longer than 4096 bytes.",
  };
  return new BuildRefused("build_output_too_large", { summary: summaries[what] });
}

async function makeImage(run: Run): Promise<Image> {
  const tree = await receive(run);
  const detected = detect(tree, run.request.commands);
  const plan = planBuild(detected, tree, await machineFor(run.options, detected.kind));
  const tools = await run.time.race(provideTools(run.options, plan));
  announce(run.log, detected, plan, tools);
  for (const warning of sourceWarnings(tree)) run.log.detail(warning);
  const context = await stepContext(run, tools);
  run.after.push(async () => run.code.make(tools.inBuild));
  const installed = await installAndBuild(context, plan);
  const files = builtFiles(run.workspace.app);
  requireCommands(detected.procfile, files.mayExist, "build");
  const start = chooseStart(run.log, { detected, plan, files });
  const isSite = start?.how === "static" && !needsTree(detected);
  const finished = isSite ? nothingKnown : await finishInstall(context, plan, installed);
  return release(run, { detected, plan, tools, start, finished });
}

function receive({ options, request, workspace, log, time }: Run): Promise<SourceTree> {
  const maxBytes = options.maxSourceBytes ?? defaultMaxSourceBytes;
  const ignoresLfs = request.commands?.lfs === "ignore";
  const unpacking = { source: request.source(), folder: workspace.app, maxBytes, uid: workspace.hostUid, ignoresLfs };
  return unpackSource({ ...unpacking, signal: time.signal }, log);
}

const toolNames: Readonly<Record<string, string>> = { node: "Node.js", deno: "Deno", bun: "Bun" };

function announce(log: BuildLog, { procfile }: Detected, plan: BuildPlan, { inBuild }: ProvidedTools): void {
  log.step(`${plan.name} detected`);
  const versions = inBuild.filter(({ version }) => version !== "" && (plan.kind === "node" || plan.kind === "deno"));
  if (versions.length > 0)
    log.detail(versions.map(({ name, version }) => `${toolNames[name] ?? name} ${version}`).join(", "));
  for (const note of plan.notes) log.detail(note);
  if (procfile.web !== null) log.detail(`The web command: ${procfile.web}`);
  for (const [type, command] of Object.entries(procfile.others)) log.detail(`The process type ${type}: ${command}`);
}

async function stepContext(run: Run, { inBuild }: ProvidedTools): Promise<InstallContext> {
  const { options, request, workspace } = run;
  const compiled = await run.code.bind(inBuild, workspace.hostUid);
  const belowTmp = [...(compiled ? [compiled.target] : []), ...options.packageDirs.filter(isBelowTmp)];
  for (const target of belowTmp) await makeBelowTmp(workspace, target);
  return {
    ...{ sandbox: options.sandbox, workspace, buildId: request.build_id, tools: inBuild, compiledCode: compiled },
    ...{ packageDirs: options.packageDirs, env: { ...options.packageEnv, ...request.env }, reach: request.reach },
    ...{ limits: request.limits, time: run.time, log: run.log, projectCacheDir: run.projectCacheDir },
    ...{
      spares: run.spares,
      packages: run.packages,
      installStore: run.installStore,
      packageEnv: options.packageEnv,
      variables: request.env,
      trash: run.trash,
      hashing: run.hashing,
      upkeep: run.upkeep.signal,
      after: run.after,
    },
    imageLimits: options.imageLimits ?? defaultImageLimits,
  };
}

interface Decisions {
  readonly detected: Detected;
  readonly plan: BuildPlan;
  readonly tools: ProvidedTools;
  readonly start: Start | null;
  readonly finished: Finished;
}

async function release(run: Run, { detected, plan, tools: provided, start, finished }: Decisions): Promise<Image> {
  const { workspace, options, request } = run;
  const { procfile } = detected;
  const content = await releaseContent(run, start, needsTree(detected));
  const kind = start?.how === "static" ? "static" : plan.kind;
  const tools = provided.inRelease.filter((tool) => kind !== "static" || needsTree(detected) || tool.name === "node");
  const { storage } = request.commands ?? {};
  if (storage !== undefined) makeStoragePlace(run.log, content.app, storage);
  const commands = { web_command: content.command, release_command: procfile.release, processes: procfile.others };
  const manifest = {
    ...{ format: 1 as const, kind, ...commands },
    binds: tools.map(({ source, target }) => ({ source, target })),
    path: [...binFolders, ...memberBin(detected.member), ...tools.map((tool) => `${tool.target}/bin`)],
    env: plan.env,
    ...(storage === undefined ? {} : { storage }),
  };
  const place = { folder: join(workspace.root, "release"), releasesDir: join(options.releasesDir, request.project_id) };
  const { hashing, time } = run;
  const { imageRef, tree, hashed } = await publish({
    app: content.app,
    ...place,
    manifest,
    known: finished.known,
    limits: options.imageLimits ?? defaultImageLimits,
    hashing,
    signal: time.signal,
  });
  time.check();
  const { remember } = finished;
  if (remember !== null) run.after.unshift(() => remember(tree, hashed.entries));
  run.log.step(`Image ${imageRef.slice(7, 19)}, ${(hashed.sizeBytes / 1024 / 1024).toFixed(1)} MiB`);
  return {
    image_ref: imageRef,
    kind,
    ...commands,
    size_bytes: hashed.sizeBytes,
  };
}

const binFolders = [`${home}/.venv/bin`, `${home}/node_modules/.bin`, `${home}/bin`];
const memberBin = (member: string | undefined) => (member === undefined ? [] : [`${home}/${member}/node_modules/.bin`]);

async function releaseContent({ workspace, trash }: Run, start: Start | null, isWhole: boolean) {
  const { app } = workspace;
  if (start?.how !== "static") return { app, command: start?.command ?? null };
  if (isWhole) return { app, command: await addSiteServer(app, start, trash) };
  return { app: await makeSite(app, join(workspace.root, "site"), start.folder), command: siteCommand(start) };
}

/** Work that remains after a build has ended. Only the project's next build waits for it. */
type Upkeep = ReturnType<typeof createUpkeep>;

function createUpkeep() {
  const under = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  const all = async () => void (await Promise.all(under.values()));
  return {
    /** Aborts when the platform stops. */
    signal: stopping.signal,
    /** Runs these one after the other. Their errors do not fail the build; the next start removes what they leave behind. */
    begin(projectId: string, works: readonly (() => Promise<void>)[]) {
      const work = runInTurn(works, stopping.signal);
      under.set(projectId, work);
      void work.then(() => under.get(projectId) === work && under.delete(projectId));
    },
    /** Resolves when no work of the project is in progress. */
    of: (projectId: string) => under.get(projectId) ?? Promise.resolve(),
    /** Resolves when no work is in progress. */
    all,
    /** Aborts current work and skips the rest. */
    stop() {
      stopping.abort();
      return all();
    },
  };
}

async function runInTurn(works: readonly (() => Promise<void>)[], signal: AbortSignal): Promise<void> {
  for (const work of works) if (!signal.aborted) await work().catch(() => {});
}
