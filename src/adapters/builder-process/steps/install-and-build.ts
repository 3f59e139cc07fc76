import { lstat, opendir, rename } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../../../kit/exec.ts";
import { installKey, type BuildPlan, type Install } from "../../../detection/plan.ts";
import type { HashedFolder } from "../release/hash-tree.ts";
import { keepBuildCaches, restoreBuildCaches } from "./build-caches.ts";
import type { InstallContext } from "./install-context.ts";
import { installStandalone } from "./install-standalone.ts";
import { keptInstalls, type KeptInstalls } from "./installs.ts";
import { buildSandboxId, runStep } from "./run-step.ts";
import { isPlain } from "../../../building/is-plain.ts";

/** What publishing may know of the installed folder without reading it again. */
export interface Finished {
  readonly known: ReadonlyMap<string, HashedFolder>;
  /** Keeps what was published of it, and its digest, for the next build. Null: nothing new. */
  readonly remember: ((tree: string, entries: ReadonlyMap<string, HashedFolder>) => Promise<void>) | null;
}

/** Installs, or takes a kept install with the same key, and builds. The installed folder then still holds what only builds need. */
export async function installAndBuild(context: InstallContext, plan: BuildPlan): Promise<Installed> {
  // The first step fails with the same error, so it is not reported here.
  if (needsSandbox(plan)) context.sandbox.prepare(buildSandboxId(context.buildId)).catch(() => {});
  const installed = await install(context, plan);
  if (plan.build.length > 0) {
    await restoreBuildCaches(context.projectCacheDir, context.workspace.app, context.workspace.hostUid);
    // A failed build's caches are kept as well: the next try is the usual case.
    try {
      for (const step of plan.build) await runStep(context, step);
    } finally {
      await keepBuildCaches(context.projectCacheDir, context.workspace.app, context.trash);
    }
  }
  return installed;
}

/** What publishing knows where nothing was installed, or nothing of it stays. */
export const nothingKnown: Finished = { known: new Map(), remember: null };

function needsSandbox({ install: wanted, build }: BuildPlan): boolean {
  return build.length > 0 || (wanted !== null && (wanted.inputs === null || wanted.again.length > 0));
}

function keptOf({
  projectCacheDir,
  spares,
  trash,
  time,
  upkeep,
  installStore,
  workspace,
}: InstallContext): KeptInstalls {
  const copyShared = async (storeKey: string, target: string) =>
    (await installStore?.copy(storeKey, target, workspace.hostUid)) ?? false;
  return keptInstalls({ projectCacheDir, spares, trash, copyShared, signal: time.signal, upkeep });
}

function keyOf({ tools }: InstallContext, wanted: Install): string | null {
  const versions = tools.map(({ name, version }) => `${name} ${version}`);
  return installKey(wanted, versions);
}

export interface Installed {
  /** When the installed folder was complete, rounded up, and its names; a later change is the build's. */
  readonly completeAtMs: number;
  readonly names: string;
  /** The folder is a link of the kept production install. */
  readonly isProduction: boolean;
  /** Resolves to whether a link of it lies at `linkedPlace`, for when the build has left its copy as it was. */
  readonly linked: Promise<boolean> | null;
}

async function install(context: InstallContext, plan: BuildPlan): Promise<Installed> {
  const { install: wanted } = plan;
  if (wanted === null) return { completeAtMs: Date.now() + 1, names: "", isProduction: false, linked: null };
  const kept = keptOf(context);
  const key = keyOf(context, wanted);
  const target = join(context.workspace.app, wanted.folder);
  const changes = plan.build.length > 0 || wanted.again.length > 0;
  if (key !== null && (await isFree(target))) {
    const reused = changes ? await kept.copyFull(key, target) : await kept.linkProduction(key, target);
    if (reused) {
      context.log.step(`Using the installed dependencies of an earlier build (${wanted.folder}, nothing changed)`);
      const linked = changes ? kept.linkProduction(key, linkedPlace(context)) : null;
      context.after.unshift(async () => void (await linked));
      // The step that needs the link reports the fault.
      linked?.catch(() => {});
      const installed = { ...(await complete(target)), isProduction: !changes, linked };
      for (const step of wanted.again) await runStep(context, step);
      return installed;
    }
    const storeKey = await installStandalone(context, wanted);
    if (storeKey !== null) {
      if (changes) await kept.keepShared(key, storeKey);
      return { ...(await complete(target)), isProduction: false, linked: null };
    }
  }
  context.hashing.expectMuch();
  if (wanted.npmLockFile !== null) {
    const { packages, workspace } = context;
    context.after.unshift(await packages.provide({ workspace, lockFile: wanted.npmLockFile }));
  }
  for (const step of wanted.steps) await runStep(context, step);
  if (key !== null && changes && (await isThere(target))) {
    await context.hashing.measure({ root: target, known: new Map(), limits: context.imageLimits });
    context.after.unshift(await kept.keep(key, "full", target));
  }
  return { ...(await complete(target)), isProduction: false, linked: null };
}

async function complete(folder: string): Promise<Pick<Installed, "completeAtMs" | "names">> {
  return { completeAtMs: Date.now() + 1, names: await namesIn(folder) };
}

/** Leaves in the installed folder only what the release needs, by a kept production install when the build changed nothing in it. */
export async function finishInstall(context: InstallContext, plan: BuildPlan, installed: Installed): Promise<Finished> {
  const { install: wanted } = plan;
  if (wanted === null) return nothingKnown;
  const kept = keptOf(context);
  const target = join(context.workspace.app, wanted.folder);
  const isSame = (await isThere(target)) && (await isUnchanged(target, installed, context.time.signal));
  const key = isSame ? keyOf(context, wanted) : null;
  const isLinked = installed.isProduction || (key !== null && (await swap(context, installed, target)));
  if (key !== null && isLinked && !installed.isProduction)
    context.after.unshift(() => kept.takeBack(key, replacedPlace(context)));
  if (!isLinked) {
    for (const step of plan.prune) await runStep(context, step);
    for (const name of leftovers) await removeFrom(context, wanted.folder, name);
  }
  await removeFrom(context, ".yarn", "install-state.gz");
  if (key === null || !(await isThere(target))) return nothingKnown;
  const hashed = isLinked ? await kept.hashed(key) : null;
  if (hashed !== null) return { known: new Map([[wanted.folder, hashed]]), remember: null };
  return {
    known: nothingKnown.known,
    remember: async (tree, entries) => {
      const entry = entries.get(wanted.folder);
      if (entry === undefined) return;
      const finish = await kept.keep(key, "production", join(tree, wanted.folder));
      await finish();
      await kept.keepHashed(key, entry);
    },
  };
}

/** Puts the kept production install in the place of the build's copy. */
async function swap(context: InstallContext, { linked }: Installed, target: string): Promise<boolean> {
  if (linked === null || !(await linked)) return false;
  await rename(target, replacedPlace(context));
  await rename(linkedPlace(context), target);
  return true;
}

const replacedPlace = ({ workspace }: InstallContext): string => join(workspace.root, "replaced");
const linkedPlace = ({ workspace }: InstallContext): string => join(workspace.root, "linked");

/** Removes what is in a folder of the application, unless the project's commands have put a link in the folder's place. */
async function removeFrom({ workspace: { app }, trash }: InstallContext, folder: string, name: string): Promise<void> {
  if (isPlain(app, folder, "folder")) await trash.discard(join(app, folder, name));
}

/** Whether the source has nothing of that name, not even a link. */
async function isFree(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) === null;
}

async function isThere(folder: string): Promise<boolean> {
  return (await lstat(folder).catch(() => null))?.isDirectory() ?? false;
}

/** Whether nothing below the folder was written since, and nothing in it removed. Its own time tells nothing: caches are put there and taken away. */
async function isUnchanged(folder: string, { completeAtMs, names }: Installed, signal: AbortSignal): Promise<boolean> {
  if ((await namesIn(folder)) !== names) return false;
  const since = `@${(completeAtMs / 1000).toFixed(3)}`;
  const others = volatileFiles.flatMap((name) => ["!", "-name", name]);
  const args = [folder, "-mindepth", "1", "-newerct", since, ...others, "-print", "-quit"];
  const found = await runOk({ file: "find", args }, { signal });
  return found.stdout === "";
}

// A build may fill the folder with as many names as the disk takes.
const mostNames = 50_000;

/** What lies directly in the folder, but for caches and notes. */
async function namesIn(folder: string): Promise<string> {
  const names: string[] = [];
  const open = await opendir(folder).catch(() => []);
  for await (const { name } of open) {
    if (!passing.has(name)) names.push(name);
    if (names.length > mostNames) break;
  }
  return names.sort().join("/");
}

// pnpm's notes to itself, which it rewrites with the time of day even when it only runs a script.
const volatileFiles = [".modules.yaml", ".pnpm-workspace-state.json", ".pnpm-workspace-state-v1.json"];
const passing = new Set([...volatileFiles, ".cache", ".vite", ".astro"]);
const leftovers = [".cache", ...volatileFiles];
