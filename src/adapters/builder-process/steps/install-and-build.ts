import { lstat, mkdir, opendir, rename, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isPlain } from "../../../building/is-plain.ts";
import { installKey, type BuildPlan, type Install } from "../../../detection/plan.ts";
import { runOk } from "../../../kit/exec.ts";
import type { HashedFolder } from "../release/hash-tree.ts";
import type { InstallContext } from "./install-context.ts";
import { installStandalone } from "./install-standalone.ts";
import { keptInstalls, type KeptInstalls } from "./installs.ts";
import { buildSandboxId, runStep } from "./run-step.ts";
import type { Trash } from "./trash.ts";
import { giveTo } from "./workspace.ts";

/** What publishing knows about the installed folder without reading it again. */
export interface Finished {
  readonly known: ReadonlyMap<string, HashedFolder>;
  /** Keeps the published folder and its digest for the next build. Null if there is nothing new to keep. */
  readonly remember: ((tree: string, entries: ReadonlyMap<string, HashedFolder>) => Promise<void>) | null;
}

/** Installs dependencies, or reuses a kept install with the same key, and builds. Dependencies for builds only are still there afterwards. */
export async function installAndBuild(context: InstallContext, plan: BuildPlan): Promise<Installed> {
  // The first step fails with the same error, so it is not reported here.
  if (needsSandbox(plan)) context.sandbox.prepare(buildSandboxId(context.buildId)).catch(() => {});
  const installed = await install(context, plan);
  if (plan.build.length > 0) {
    await restoreBuildCaches(context.projectCacheDir, context.workspace.app, context.workspace.hostUid);
    // Keeps the caches of a failed build too, since another try usually follows.
    try {
      for (const step of plan.build) await runStep(context, step);
    } finally {
      await keepBuildCaches(context.projectCacheDir, context.workspace.app, context.trash);
    }
  }
  return installed;
}

/** Used if nothing was installed, or nothing of it goes into the release. */
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
  /** When the installed folder was complete (rounded up), and the names in it; later changes come from the build. */
  readonly completeAtMs: number;
  readonly names: string;
  /** Whether the folder's files are hard links to the kept production install. */
  readonly isProduction: boolean;
  /** Resolves to whether `linkedPlace` holds links to the kept production install, used if the build leaves its copy unchanged. */
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
      // The step that awaits the links reports the error.
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

/** Reduces the installed folder to what the release needs: a kept production install if the build changed nothing, else by prune steps. */
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

/** Replaces the build's copy with the kept production install; returns false if there is none. */
async function swap(context: InstallContext, { linked }: Installed, target: string): Promise<boolean> {
  if (linked === null || !(await linked)) return false;
  await rename(target, replacedPlace(context));
  await rename(linkedPlace(context), target);
  return true;
}

const replacedPlace = ({ workspace }: InstallContext): string => join(workspace.root, "replaced");
const linkedPlace = ({ workspace }: InstallContext): string => join(workspace.root, "linked");

/** Removes an entry of a folder in the application, unless the project's commands replaced the folder with a link. */
async function removeFrom({ workspace: { app }, trash }: InstallContext, folder: string, name: string): Promise<void> {
  if (isPlain(app, folder, "folder")) await trash.discard(join(app, folder, name));
}

/** Returns whether nothing exists at the path, not even a link. */
async function isFree(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) === null;
}

async function isThere(folder: string): Promise<boolean> {
  return (await lstat(folder).catch(() => null))?.isDirectory() ?? false;
}

/** Returns whether nothing in the folder changed since the install. Its own ctime does not count: caches are moved in and out. */
async function isUnchanged(folder: string, { completeAtMs, names }: Installed, signal: AbortSignal): Promise<boolean> {
  if ((await namesIn(folder)) !== names) return false;
  const since = `@${(completeAtMs / 1000).toFixed(3)}`;
  const others = volatileFiles.flatMap((name) => ["!", "-name", name]);
  const args = [folder, "-mindepth", "1", "-newerct", since, ...others, "-print", "-quit"];
  const found = await runOk({ file: "find", args }, { signal });
  return found.stdout === "";
}

// Bounds the list: a build may create as many names as fit on the disk.
const mostNames = 50_000;

/** Returns the names directly in the folder, without caches and pnpm's state files. */
async function namesIn(folder: string): Promise<string> {
  const names: string[] = [];
  const open = await opendir(folder).catch(() => []);
  for await (const { name } of open) {
    if (!passing.has(name)) names.push(name);
    if (names.length > mostNames) break;
  }
  return names.sort().join("/");
}

// pnpm's state files, which it rewrites with the current time even when it only runs a script.
const volatileFiles = [".modules.yaml", ".pnpm-workspace-state.json", ".pnpm-workspace-state-v1.json"];
const passing = new Set([...volatileFiles, ".cache", ".vite", ".astro"]);
const leftovers = [".cache", ...volatileFiles];

// Folders below the application in which tools keep caches between builds. None of them belongs in a release.
const folders = [
  ".next/cache",
  "node_modules/.cache",
  "node_modules/.vite",
  "node_modules/.astro",
  ".angular/cache",
  ".parcel-cache",
  ".turbo",
];

/** Moves the kept caches of build tools into the application's folder, which belongs to `uid`. */
async function restoreBuildCaches(projectCacheDir: string, app: string, uid: number): Promise<void> {
  for (const folder of folders) {
    const kept = keptPlace(projectCacheDir, folder);
    if (!(await stat(kept).catch(() => null))) continue;
    const parent = dirname(folder);
    if (parent === ".next") await makeOwn(join(app, parent), uid);
    if (parent === "." || isPlain(app, parent, "folder")) await rename(kept, join(app, folder)).catch(() => {});
  }
}

async function makeOwn(folder: string, uid: number): Promise<void> {
  await mkdir(folder).catch(() => {});
  await giveTo(folder, uid);
}

function keptPlace(projectCacheDir: string, folder: string): string {
  return join(projectCacheDir, "build", folder.replaceAll("/", "+"));
}

/** Moves the caches of build tools out of the application's folder and keeps them for the next build. */
async function keepBuildCaches(projectCacheDir: string, app: string, trash: Trash): Promise<void> {
  for (const folder of folders) {
    if (!isPlain(app, folder, "folder")) continue;
    const target = keptPlace(projectCacheDir, folder);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await trash.discard(target);
    await rename(join(app, folder), target).catch(() => {});
  }
}
