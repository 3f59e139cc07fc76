import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { silentLog } from "../../kit/log.ts";
import type { Builder, BuildOutcome, BuildRequest, Image } from "../../ports/builder.ts";
import { createBuildLog, type BuildLog } from "./build-log.ts";
import { BuildRefused, toFailure } from "./failure-codes.ts";
import { builtFiles, prepare, type Prepared } from "./languages.ts";
import { defaultMaxSourceBytes, type ProcessBuilderOptions } from "./options.ts";
import { detect, type Detected } from "./plan/detect.ts";
import type { Start } from "./plan/plan.ts";
import { addSiteServer, makeSite, publish, siteCommand } from "./release/publish.ts";
import type { SourceTree } from "./source/source-tree.ts";
import { unpack } from "./source/unpack.ts";
import { openSpares, type Spares } from "./steps/spares.ts";
import { createUpkeep, type Upkeep } from "./steps/upkeep.ts";
import { startHashing, type Hashing } from "./release/hash-tree.ts";
import {
  finishInstall,
  installAndBuild,
  nothingKnown,
  type Finished,
  type InstallContext,
} from "./steps/install-and-build.ts";
import { compiledCode, type CompiledCode } from "./tools/compiled-code.ts";
import { removeTree } from "./steps/remove-tree.ts";
import { buildSandboxId } from "./steps/run-step.ts";
import { home, isBelowTmp, makeBelowTmp, makeWorkspace, type Workspace } from "./steps/workspace.ts";

export type { ProcessBuilderOptions } from "./options.ts";

export interface ProcessBuilder extends Builder {
  /** Resolves when what ended builds left is put away: their folders, their networks, what the next build will use again. */
  settle(): Promise<void>;
  /** Resolves when nothing of it runs any more: what ended builds left is put away, further preparations are given up. */
  close(): Promise<void>;
}

/**
 * Builds images that the process runtime runs: a folder with the application's files, its dependencies and a manifest.
 * What builds of an earlier process left behind is removed first. One at a time may exist for the same folders.
 */
export async function createProcessBuilder(options: ProcessBuilderOptions): Promise<ProcessBuilder> {
  for (const folder of [options.releasesDir, options.buildsDir, options.cachesDir, options.toolsDir]) {
    await mkdir(folder, { recursive: true, mode: 0o755 });
  }
  await sweepLeftovers(options);
  const upkeep = createUpkeep();
  const spares = await openSpares(options.cachesDir);
  const { sandbox, uidBase, log = silentLog } = options;
  const code = compiledCode({ folder: join(options.toolsDir, "compiled-code"), sandbox, uid: uidBase, log });
  return {
    build: (request) => build(options, request, { upkeep, spares, code }),
    images: async (projectId) => {
      const names = await readdir(join(options.releasesDir, projectId)).catch(() => []);
      return names.filter((name) => /^[0-9a-f]{64}$/.test(name)).map((name) => `sha256:${name}`);
    },
    settle: async () => {
      await upkeep.all();
      await code.settle();
    },
    close: async () => {
      await upkeep.all();
      await code.stop();
    },
  };
}

async function sweepLeftovers(options: ProcessBuilderOptions): Promise<void> {
  const left = await options.sandbox.sweep("build", []);
  if (left.length > 0) options.log?.warn({ sandboxes: left }, "what a crash left of builds could not be removed");
  for (const name of await readdir(options.buildsDir)) await removeTree(join(options.buildsDir, name));
}

/** One build on its way: what its stages share. */
interface Run {
  readonly options: ProcessBuilderOptions;
  readonly request: BuildRequest;
  readonly log: BuildLog;
  readonly workspace: Workspace;
  readonly projectCacheDir: string;
  readonly deadlineMs: number;
  readonly spares: Spares;
  readonly code: CompiledCode;
  readonly hashing: Hashing;
  /** What is left to do when the build has ended. */
  readonly after: (() => Promise<void>)[];
}

interface Shared {
  readonly upkeep: Upkeep;
  readonly spares: Spares;
  readonly code: CompiledCode;
}

async function build(
  options: ProcessBuilderOptions,
  request: BuildRequest,
  { upkeep, spares, code }: Shared,
): Promise<BuildOutcome> {
  await upkeep.of(request.project_id);
  const log = createBuildLog(request.onLine, Object.values(request.env));
  const uid = options.uidBase + request.project_number;
  const projectCacheDir = join(options.cachesDir, request.project_id);
  const workspace = await makeWorkspace({
    buildsDir: options.buildsDir,
    projectCacheDir,
    buildId: request.build_id,
    uid,
    hostUid: options.sandbox.hostUid(uid),
  });
  const hashing = startHashing();
  const after = [() => options.sandbox.remove(buildSandboxId(request.build_id)), () => removeTree(workspace.root)];
  try {
    request.signal.throwIfAborted();
    const image = await makeImage({
      options,
      request,
      log,
      workspace,
      projectCacheDir,
      deadlineMs: Date.now() + request.limits.timeoutMs,
      spares,
      code,
      hashing,
      after,
    });
    return { outcome: "built", image };
  } catch (error) {
    return endedBy(error, request, log);
  } finally {
    hashing.stop();
    upkeep.begin(request.project_id, after);
  }
}

function endedBy(error: unknown, request: BuildRequest, log: BuildLog): BuildOutcome {
  if (request.signal.aborted) {
    log.error("The build was cancelled.");
    return { outcome: "cancelled" };
  }
  if (!(error instanceof BuildRefused)) throw error;
  const tail = log.tail();
  const failure = toFailure(error, tail, log.redact);
  log.error(`${failure.summary}`);
  log.error(failure.hint);
  return { outcome: "failed", failure };
}

async function makeImage(run: Run): Promise<Image> {
  const tree = await receive(run);
  const detected = detect(tree);
  const prepared = await prepare(run.options, detected, tree);
  announce(run.log, detected, prepared);
  for (const remark of remarks(tree)) run.log.detail(remark);
  const context = await stepContext(run, prepared);
  run.after.push(async () => run.code.make(prepared.tools));
  const installed = await installAndBuild(context, prepared.plan);
  const start = chooseStart(run, detected, prepared);
  const isSite = start?.how === "static" && detected.procfile.release === null;
  const finished = isSite ? nothingKnown : await finishInstall(context, prepared.plan, installed);
  return release(run, { detected, prepared, start, finished });
}

function receive({ options, request, workspace }: Run) {
  const maxBytes = options.maxSourceBytes ?? defaultMaxSourceBytes;
  return unpack({
    source: request.source(),
    folder: workspace.app,
    maxBytes,
    signal: request.signal,
    uid: workspace.hostUid,
  });
}

function announce(log: BuildLog, { procfile }: Detected, { plan }: Prepared): void {
  log.step(`${plan.name} detected`);
  for (const note of plan.notes) log.detail(note);
  if (procfile.web !== null) log.detail(`The web command comes from the Procfile: ${procfile.web}`);
  if (procfile.ignored.length > 0)
    log.detail(
      `Not run here: the process types ${procfile.ignored.join(", ")} of the Procfile (only web and release are)`,
    );
}

/** What works, but is rarely meant. */
function remarks(tree: SourceTree): string[] {
  const hasModules = tree.paths.some((path) => path.startsWith("node_modules/"));
  return [
    ...(tree.has(".env")
      ? [
          ".env is in the repository, where everybody who has it reads the values. `berth env set --from-file .env` seals them.",
        ]
      : []),
    ...(hasModules
      ? ["node_modules is in the repository. `git rm -r --cached node_modules` and .gitignore keep it out."]
      : []),
  ];
}

async function stepContext(run: Run, prepared: Prepared): Promise<InstallContext> {
  const { options, request, workspace } = run;
  const compiled = await run.code.bind(prepared.tools, workspace.hostUid);
  const belowTmp = [...(compiled ? [compiled.target] : []), ...options.packageDirs.filter(isBelowTmp)];
  for (const target of belowTmp) await makeBelowTmp(workspace, target);
  return {
    ...{ sandbox: options.sandbox, workspace, buildId: request.build_id, tools: prepared.tools },
    ...{
      compiledCode: compiled,
      packageDirs: options.packageDirs,
      env: { ...options.packageEnv, ...request.env },
      limits: request.limits,
    },
    ...{ deadlineMs: run.deadlineMs, signal: request.signal, log: run.log, projectCacheDir: run.projectCacheDir },
    ...{ spares: run.spares, hashing: run.hashing, after: run.after },
  };
}

/** Null: the Procfile's command. */
function chooseStart({ log, workspace }: Run, { procfile }: Detected, prepared: Prepared): Start | null {
  if (procfile.web !== null) return null;
  const start = prepared.start(builtFiles(workspace.app));
  if (start === null) throw nothingToStart(prepared);
  log.step(
    start.how === "static"
      ? `Serving ${start.folder === "." ? "the files" : `${start.folder}/`} as a static site`
      : `Starting with: ${start.command}`,
  );
  log.detail(`because of ${start.because}`);
  return start;
}

function nothingToStart({ plan, startHint }: Prepared): BuildRefused {
  const code = plan.build.length > 0 && plan.kind === "node" ? "build_output_missing" : "no_start_command";
  return new BuildRefused(code, startHint === undefined ? {} : { hint: startHint });
}

interface Decisions {
  readonly detected: Detected;
  readonly prepared: Prepared;
  readonly start: Start | null;
  readonly finished: Finished;
}

async function release(run: Run, { detected, prepared, start, finished }: Decisions): Promise<Image> {
  const { workspace, options, request } = run;
  const { procfile } = detected;
  const content = await releaseContent(workspace, start, procfile.web, procfile.release);
  const kind = start?.how === "static" ? "static" : prepared.plan.kind;
  const tools = prepared.releaseTools.filter(
    (tool) => kind !== "static" || procfile.release !== null || tool.name === "node",
  );
  const manifest = {
    ...{ format: 1 as const, kind, web_command: content.command, release_command: procfile.release },
    binds: tools.map(({ source, target }) => ({ source, target })),
    path: [`${home}/.venv/bin`, `${home}/node_modules/.bin`, ...tools.map((tool) => `${tool.target}/bin`)],
    env: prepared.env,
  };
  const place = { folder: join(workspace.root, "release"), releasesDir: join(options.releasesDir, request.project_id) };
  const { hashing } = run;
  const { imageRef, tree, hashed } = await publish({
    app: content.app,
    ...place,
    manifest,
    known: finished.known,
    hashing,
  });
  const { remember } = finished;
  if (remember !== null) run.after.unshift(() => remember(tree, hashed.entries));
  run.log.step(`Image ${imageRef.slice(7, 19)}, ${(hashed.sizeBytes / 1024 / 1024).toFixed(1)} MiB`);
  return {
    image_ref: imageRef,
    kind,
    web_command: content.command,
    release_command: procfile.release,
    size_bytes: hashed.sizeBytes,
  };
}

async function releaseContent(
  workspace: Workspace,
  start: Start | null,
  web: string | null,
  releaseCommand: string | null,
) {
  const { app } = workspace;
  if (start?.how !== "static") return { app, command: start?.command ?? web ?? "" };
  if (releaseCommand !== null) return { app, command: await addSiteServer(app, start) };
  return { app: await makeSite(app, join(workspace.root, "site"), start.folder), command: siteCommand(start) };
}
