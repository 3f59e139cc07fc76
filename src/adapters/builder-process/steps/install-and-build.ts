import { lstat, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { runOk } from "../../../kit/exec.ts";
import type { Plan } from "../plan/plan.ts";
import type { HashedFolder } from "../release/hash-tree.ts";
import { keepBuildCaches, restoreBuildCaches } from "./build-caches.ts";
import { keptInstalls, type KeptInstalls } from "./installs.ts";
import { runStep, type StepContext } from "./run-step.ts";

export interface InstallContext extends StepContext {
  readonly projectCacheDir: string;
}

/** What publishing may know of the installed folder without reading it again. */
export interface Finished {
  readonly known: Readonly<Record<string, HashedFolder>>;
  /** Tells the cache what the published content's digests were. */
  remember(entries: Readonly<Record<string, HashedFolder>>): Promise<void>;
}

/** Installs, or takes a kept install with the same key, and builds. The installed folder then still holds what only builds need. */
export async function installAndBuild(context: InstallContext, plan: Plan): Promise<Installed> {
  const kept = keptInstalls(context.projectCacheDir);
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

export interface Installed {
  /** When the installed folder was complete, rounded up; a later change in it is the build's. */
  readonly completeAtMs: number;
  /** The folder is a link of the kept production install. */
  readonly isProduction: boolean;
}

async function install(context: InstallContext, plan: Plan, kept: KeptInstalls): Promise<Installed> {
  const { install: wanted } = plan;
  if (wanted === null) return { completeAtMs: Date.now() + 1, isProduction: false };
  const target = join(context.workspace.app, wanted.folder);
  const changes = plan.build.length > 0 || wanted.again.length > 0;
  if (wanted.key !== null && !(await isThere(target))) {
    const reused = changes ? await kept.copyFull(wanted.key, target) : await kept.linkProduction(wanted.key, target);
    if (reused) {
      context.log.step(`Using the installed dependencies of an earlier build (${wanted.folder}, nothing changed)`);
      const installed = { completeAtMs: Date.now() + 1, isProduction: !changes };
      for (const step of wanted.again) await runStep(context, step);
      return installed;
    }
  }
  for (const step of wanted.steps) await runStep(context, step);
  if (wanted.key !== null && changes && (await isThere(target))) await kept.keep(wanted.key, "full", target);
  return { completeAtMs: Date.now() + 1, isProduction: false };
}

/** Leaves in the installed folder only what the release needs, by a kept production install when the build changed nothing in it. */
export async function finishInstall(context: InstallContext, plan: Plan, installed: Installed): Promise<Finished> {
  const { install: wanted } = plan;
  const kept = keptInstalls(context.projectCacheDir);
  if (wanted === null) return { known: {}, remember: async () => {} };
  const target = join(context.workspace.app, wanted.folder);
  const key = (await isThere(target)) && (await isUnchanged(target, installed.completeAtMs)) ? wanted.key : null;
  const isLinked = installed.isProduction || (key !== null && (await swap(context, kept, key, target)));
  if (!isLinked) {
    for (const step of plan.prune) await runStep(context, step);
    for (const name of leftovers) await rm(join(target, name), { recursive: true, force: true });
    if (key !== null) await kept.keep(key, "production", target);
  }
  await rm(join(context.workspace.app, ".yarn/install-state.gz"), { force: true });
  if (key === null) return { known: {}, remember: async () => {} };
  const hashed = isLinked ? await kept.hashed(key) : null;
  return {
    known: hashed === null ? {} : { [wanted.folder]: hashed },
    remember: async (entries) => {
      const entry = entries[wanted.folder];
      if (hashed === null && entry !== undefined) await kept.keepHashed(key, entry);
    },
  };
}

/** Puts the kept production install in the place of the build's copy. */
async function swap(context: InstallContext, kept: KeptInstalls, key: string, target: string): Promise<boolean> {
  const aside = join(context.workspace.root, "replaced");
  await rename(target, aside);
  if (await kept.linkProduction(key, target)) return true;
  await rename(aside, target);
  return false;
}

async function isThere(folder: string): Promise<boolean> {
  return (await lstat(folder).catch(() => null))?.isDirectory() ?? false;
}

/** Whether nothing below the folder was written since. The folder itself may be: build tools put caches there, which are taken away. */
async function isUnchanged(folder: string, sinceMs: number): Promise<boolean> {
  const since = `@${(sinceMs / 1000).toFixed(3)}`;
  const others = volatileFiles.flatMap((name) => ["!", "-name", name]);
  const found = await runOk({
    file: "find",
    args: [folder, "-mindepth", "1", "-newerct", since, ...others, "-print", "-quit"],
  });
  return found.stdout === "";
}

// pnpm's notes to itself, which it rewrites with the time of day even when it only runs a script.
const volatileFiles = [".modules.yaml", ".pnpm-workspace-state.json", ".pnpm-workspace-state-v1.json"];
const leftovers = [".cache", ...volatileFiles];
