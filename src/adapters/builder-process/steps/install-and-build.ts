import { lstat, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../../../kit/exec.ts";
import type { Plan } from "../plan/plan.ts";
import type { HashedFolder, Hashing } from "../release/hash-tree.ts";
import { keepBuildCaches, restoreBuildCaches } from "./build-caches.ts";
import { keptInstalls, type KeptInstalls } from "./installs.ts";
import { removeTree } from "./remove-tree.ts";
import { buildSandboxId, runStep, type StepContext } from "./run-step.ts";
import type { Spares } from "./spares.ts";
import { isPlain } from "./workspace.ts";

export interface InstallContext extends StepContext {
  readonly projectCacheDir: string;
  readonly spares: Spares;
  readonly hashing: Hashing;
  /** What is left to do when the build has ended. */
  readonly after: (() => Promise<void>)[];
}

/** What publishing may know of the installed folder without reading it again. */
export interface Finished {
  readonly known: ReadonlyMap<string, HashedFolder>;
  /** Keeps what was published of it, and its digest, for the next build. Null: nothing new. */
  readonly remember: ((tree: string, entries: ReadonlyMap<string, HashedFolder>) => Promise<void>) | null;
}

/** Installs, or takes a kept install with the same key, and builds. The installed folder then still holds what only builds need. */
export async function installAndBuild(context: InstallContext, plan: Plan): Promise<Installed> {
  const kept = keptInstalls(context.projectCacheDir, context.spares);
  // Its fault would be told by the first step, which needs the same.
  if (needsSandbox(plan)) context.sandbox.prepare(buildSandboxId(context.buildId)).catch(() => {});
  const installed = await install(context, plan, kept);
  if (plan.build.length > 0) {
    await restoreBuildCaches(context.projectCacheDir, context.workspace.app, context.workspace.hostUid);
    // A failed build's caches are kept as well: the next try is the usual case.
    try {
      for (const step of plan.build) await runStep(context, step);
    } finally {
      await keepBuildCaches(context.projectCacheDir, context.workspace.app);
    }
  }
  return installed;
}

/** What publishing knows where nothing was installed, or nothing of it stays. */
export const nothingKnown: Finished = { known: new Map(), remember: null };

function needsSandbox({ install: wanted, build }: Plan): boolean {
  return build.length > 0 || (wanted !== null && (wanted.key === null || wanted.again.length > 0));
}

export interface Installed {
  /** When the installed folder was complete, rounded up, and what was in it; a later change is the build's. */
  readonly completeAtMs: number;
  readonly names: string;
  /** The folder is a link of the kept production install. */
  readonly isProduction: boolean;
  /** Answers whether a link of it lies at `linkedPlace`, for when the build has left its copy as it was. */
  readonly linked: Promise<boolean> | null;
}

async function install(context: InstallContext, plan: Plan, kept: KeptInstalls): Promise<Installed> {
  const { install: wanted } = plan;
  if (wanted === null) return { completeAtMs: Date.now() + 1, names: "", isProduction: false, linked: null };
  const target = join(context.workspace.app, wanted.folder);
  const changes = plan.build.length > 0 || wanted.again.length > 0;
  if (wanted.key !== null && (await isFree(target))) {
    const reused = changes ? await kept.copyFull(wanted.key, target) : await kept.linkProduction(wanted.key, target);
    if (reused) {
      context.log.step(`Using the installed dependencies of an earlier build (${wanted.folder}, nothing changed)`);
      const linked = changes ? kept.linkProduction(wanted.key, linkedPlace(context)) : null;
      context.after.unshift(async () => void (await linked));
      // Its fault is told where it is needed, if it is.
      linked?.catch(() => {});
      const installed = { ...(await complete(target)), isProduction: !changes, linked };
      for (const step of wanted.again) await runStep(context, step);
      return installed;
    }
  }
  context.hashing.expectMuch();
  for (const step of wanted.steps) await runStep(context, step);
  if (wanted.key !== null && changes && (await isThere(target)))
    context.after.unshift(await kept.keep(wanted.key, "full", target));
  return { ...(await complete(target)), isProduction: false, linked: null };
}

async function complete(folder: string): Promise<Pick<Installed, "completeAtMs" | "names">> {
  return { completeAtMs: Date.now() + 1, names: await namesIn(folder) };
}

/** Leaves in the installed folder only what the release needs, by a kept production install when the build changed nothing in it. */
export async function finishInstall(context: InstallContext, plan: Plan, installed: Installed): Promise<Finished> {
  const { install: wanted } = plan;
  const kept = keptInstalls(context.projectCacheDir, context.spares);
  if (wanted === null) return nothingKnown;
  const target = join(context.workspace.app, wanted.folder);
  const key = (await isThere(target)) && (await isUnchanged(target, installed)) ? wanted.key : null;
  const isLinked = installed.isProduction || (key !== null && (await swap(context, installed, target)));
  if (key !== null && isLinked && !installed.isProduction)
    context.after.unshift(() => kept.takeBack(key, replacedPlace(context)));
  if (!isLinked) {
    for (const step of plan.prune) await runStep(context, step);
    for (const name of leftovers) await removeFrom(context.workspace.app, wanted.folder, name);
  }
  await removeFrom(context.workspace.app, ".yarn", "install-state.gz");
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
async function removeFrom(app: string, folder: string, name: string): Promise<void> {
  if (isPlain(app, folder, "folder")) await removeTree(join(app, folder, name));
}

/** Whether the source has nothing of that name, not even a link. */
async function isFree(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) === null;
}

async function isThere(folder: string): Promise<boolean> {
  return (await lstat(folder).catch(() => null))?.isDirectory() ?? false;
}

/** Whether nothing below the folder was written since, and nothing in it removed. Its own time tells nothing: caches are put there and taken away. */
async function isUnchanged(folder: string, { completeAtMs, names }: Installed): Promise<boolean> {
  if ((await namesIn(folder)) !== names) return false;
  const since = `@${(completeAtMs / 1000).toFixed(3)}`;
  const others = volatileFiles.flatMap((name) => ["!", "-name", name]);
  const found = await runOk({
    file: "find",
    args: [folder, "-mindepth", "1", "-newerct", since, ...others, "-print", "-quit"],
  });
  return found.stdout === "";
}

/** What lies directly in the folder, but for caches and notes. */
async function namesIn(folder: string): Promise<string> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => !passing.has(name))
    .sort()
    .join("/");
}

// pnpm's notes to itself, which it rewrites with the time of day even when it only runs a script.
const volatileFiles = [".modules.yaml", ".pnpm-workspace-state.json", ".pnpm-workspace-state-v1.json"];
const passing = new Set([...volatileFiles, ".cache", ".vite", ".astro"]);
const leftovers = [".cache", ...volatileFiles];
