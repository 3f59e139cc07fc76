import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isPlain } from "../../../building/is-plain.ts";
import { standaloneLock } from "../../../detection/standalone-lock.ts";
import type { Install } from "../../../detection/plan.ts";
import { copyFor, installStoreKey, type InstallStore } from "../tools/install-store.ts";
import type { InstallContext } from "./install-context.ts";
import { tryStep } from "./run-step.ts";
import { giveTo, type Workspace } from "./workspace.ts";

const largestLockBytes = 16 * 1024 * 1024;
// Project variables that affect the package manager, so that the shared install might not be what the project wants. NODE_ENV is excluded,
// because the steps state its effect themselves.
const takesPart = /^(?:npm_|NODE_(?!ENV$))|_proxy$/i;

/**
 * Fills the installed folder with an install that several projects may share: from the store, or by installing in a place that holds
 * nothing of the project but the manifest and lock file. Returns its key in the store; null if the project needs more, or the lock file is
 * not enough.
 */
export async function installStandalone(context: InstallContext, wanted: Install): Promise<string | null> {
  const { installStore, workspace } = context;
  const inputs = await inputsOf(context, wanted);
  if (installStore === null || inputs === null) return null;
  const target = join(workspace.app, wanted.folder);
  if (await installStore.copy(inputs.key, target, workspace.hostUid)) {
    context.log.step(
      `Using the dependencies that a build on this machine installed from the same lock file (${wanted.folder})`,
    );
    return inputs.key;
  }
  return (await installAlone(context, { wanted, inputs, target, installStore })) ? inputs.key : null;
}

interface Inputs {
  readonly key: string;
  /** Contents by file name. */
  readonly files: Readonly<Record<string, string>>;
}

async function inputsOf(
  { workspace, tools, packageEnv, variables }: InstallContext,
  wanted: Install,
): Promise<Inputs | null> {
  const { standalone, npmLockFile } = wanted;
  if (standalone === undefined || npmLockFile === null || Object.keys(variables).some((name) => takesPart.test(name)))
    return null;
  if (!isPlain(workspace.app, npmLockFile, "file")) return null;
  const text = await readFile(join(workspace.app, npmLockFile), "utf8");
  const lock = text.length > largestLockBytes ? null : standaloneLock(text);
  if (lock === null) return null;
  const files = { "package.json": standalone.manifest, [npmLockFile]: lock };
  const versions = tools.map(({ name, version }) => `${name} ${version}`);
  return { files, key: installStoreKey([versions, standalone.step.args, packageEnv, files]) };
}

interface Alone {
  readonly wanted: Install;
  readonly inputs: Inputs;
  readonly target: string;
  readonly installStore: InstallStore;
}

async function installAlone(
  context: InstallContext,
  { wanted, inputs, target, installStore }: Alone,
): Promise<boolean> {
  const { standalone, npmLockFile } = wanted;
  if (standalone === undefined || npmLockFile === null) return false;
  context.hashing.expectMuch();
  const workspace = await makePlace(context.workspace, inputs.files);
  context.after.unshift(await context.packages.provide({ workspace, lockFile: npmLockFile }));
  if (!(await tryStep({ ...context, workspace, env: context.packageEnv }, standalone.step))) return false;
  const installed = join(workspace.app, wanted.folder);
  if (!isPlain(workspace.app, wanted.folder, "folder")) return true;
  await context.hashing.measure({ root: installed, known: new Map(), limits: context.imageLimits });
  if (!(await copyFor(workspace.hostUid, installed, target))) throw new Error(`${installed} could not be copied`);
  context.after.unshift(() => installStore.keep(inputs.key, installed));
  return true;
}

/** Creates a folder with only these files and an empty cache, so that nothing from earlier builds of the project can take part. */
async function makePlace(workspace: Workspace, files: Inputs["files"]): Promise<Workspace> {
  const [app, cache] = [join(workspace.root, "standalone", "app"), join(workspace.root, "standalone", "cache")];
  for (const folder of [app, cache]) {
    await mkdir(folder, { recursive: true, mode: 0o755 });
    await giveTo(folder, workspace.hostUid);
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(app, name), text, { mode: 0o444 });
  return { ...workspace, app, cache };
}
