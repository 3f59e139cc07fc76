import { createHash } from "node:crypto";
import type { PackageJson } from "./package-json.ts";
import type { PackageManager } from "./package-manager.ts";
import type { Plan, Step, Tool } from "./plan.ts";
import type { SourceTree } from "../source/source-tree.ts";

export interface NodeFacts {
  readonly manifest: PackageJson;
  readonly tree: SourceTree;
  readonly manager: PackageManager;
  /** The exact versions that were chosen. */
  readonly nodeVersion: string;
  readonly managerVersion: string;
  readonly notes: readonly string[];
}

/** What installing and building a Node application takes. */
export function nodePlan(facts: NodeFacts): Plan {
  const isFull = needsDevDependencies(facts.manifest);
  return {
    kind: "node",
    name: "Node.js app",
    notes: [
      `Node.js ${facts.nodeVersion}, ${commandName(facts.manager)} ${facts.managerVersion}`,
      ...facts.notes,
      ...facts.manager.notes,
      ...(choosesSvelteAdapter(facts.manifest)
        ? ["SvelteKit: @sveltejs/adapter-auto takes @sveltejs/adapter-node"]
        : []),
    ],
    install: isEmpty(facts)
      ? null
      : {
          folder: "node_modules",
          key: installKey(facts, isFull),
          steps: [installStep(facts, isFull)],
          again: ownScripts(facts.manifest).map((name) => scriptStep(facts.manager, name, "install")),
        },
    build: buildSteps(facts),
    prune: isFull && Object.keys(facts.manifest.devDependencies).length > 0 ? pruneSteps(facts.manager) : [],
  };
}

const lifecycle = ["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"];
// These only set up git hooks on a developer's machine.
const gitHookTools = /^(?:npx )?(?:husky|lefthook|simple-git-hooks|is-ci \|\| husky)\b/;

function ownInstallScripts(manifest: PackageJson): string[] {
  return lifecycle.filter((name) => manifest.scripts[name] !== undefined);
}

/** Those that do something for the application, in their order. */
function ownScripts(manifest: PackageJson): string[] {
  return ownInstallScripts(manifest).filter(
    (name) => name !== "preinstall" && !gitHookTools.test(manifest.scripts[name] as string),
  );
}

/** A build script or an install script of the application may call development tools. */
function needsDevDependencies(manifest: PackageJson): boolean {
  return manifest.scripts["build"] !== undefined || manifest.hasWorkspaces || ownInstallScripts(manifest).length > 0;
}

function isEmpty({ manifest, manager }: NodeFacts): boolean {
  const declared = { ...manifest.dependencies, ...manifest.devDependencies };
  return (
    Object.keys(declared).length === 0 &&
    !manifest.hasWorkspaces &&
    manager.lockFile === null &&
    ownInstallScripts(manifest).length === 0
  );
}

/** Null when the result depends on more than the lock file: workspaces, folders as dependencies, patches of its own, a lock that is a link or huge, or no lock at all. */
function installKey(facts: NodeFacts, isFull: boolean): string | null {
  const { manifest, manager, tree } = facts;
  const patches = ownInstallScripts(manifest).some((name) => (manifest.scripts[name] as string).includes("patch"));
  const specs = Object.values({ ...manifest.dependencies, ...manifest.devDependencies });
  const usesFolders = specs.some((spec) => /^(?:file|link|portal|workspace|patch):/.test(spec));
  if (manager.lockFile === null || manifest.hasWorkspaces || tree.has("pnpm-workspace.yaml") || patches || usesFolders)
    return null;
  const deciding = [manager.lockFile, ".npmrc", ".yarnrc", ".yarnrc.yml"].filter((file) => tree.has(file));
  const digests = deciding.map((file) => tree.lock(file)?.digest);
  if (digests.includes(undefined)) return null;
  const inputs = [
    process.arch,
    facts.nodeVersion,
    manager.name,
    facts.managerVersion,
    isFull,
    manifest.installInputs,
    deciding,
    digests,
  ];
  return createHash("sha256").update(JSON.stringify(inputs)).digest("hex");
}

function installStep({ manager, manifest }: NodeFacts, isFull: boolean): Step {
  const locked = manager.lockFile !== null;
  const how = { locked, isFull, hasDev: Object.keys(manifest.devDependencies).length > 0 };
  const step = (args: Step["args"]): Step => ({
    title: `Installing dependencies: ${args.filter((arg) => !quietFlags.has(arg)).join(" ")}`,
    stage: "install",
    args,
    env: { ...(manager.name === "pnpm" ? pnpmEnv : {}), HUSKY: "0" },
    tool: toolOf(manager),
    otherwise: "install_failed",
  });
  const chosen = step(installArgs(manager, how));
  if (manager.name !== "npm" || !locked) return chosen;
  const loose = step([...installArgs(manager, { ...how, locked: false }), "--no-save"]);
  const fits = (output: string) => lacksOnlyIndirect(output, manifest);
  return { ...chosen, instead: { fits, remark: incompleteLock, step: loose } };
}

const incompleteLock =
  "The lock file agrees with package.json, but lacks packages that others need (often optional ones for other systems). Those are taken in their newest fitting versions; all others as locked.";

/**
 * npm writes lock files that its own `npm ci` refuses, when optional packages for other systems were not to be had where the
 * file was made. Then nothing that package.json names itself is missing or differs.
 */
function lacksOnlyIndirect(output: string, { dependencies, devDependencies }: PackageJson): boolean {
  const missing = [...output.matchAll(/Missing: (@?[^@\s]+)@\S* from lock file/g)].map((match) => match[1] as string);
  const isOwn = (name: string) => dependencies[name] !== undefined || devDependencies[name] !== undefined;
  return missing.length > 0 && !missing.some(isOwn) && !/Invalid: /.test(output);
}

const quietFlags = new Set(["--no-audit", "--no-fund", "--no-progress", "--no-save", "--no-update-notifier"]);
// Copies instead of links, so that nothing in the application's tree is shared with the store. CI keeps pnpm from asking.
const pnpmEnv = { CI: "true", npm_config_package_import_method: "copy", npm_config_store_dir: "/cache/pnpm" };

function installArgs(
  manager: PackageManager,
  how: { locked: boolean; isFull: boolean; hasDev: boolean },
): [string, ...string[]] {
  switch (manager.name) {
    case "npm":
      return [
        "npm",
        how.locked ? "ci" : "install",
        how.isFull ? "--include=dev" : "--omit=dev",
        "--no-audit",
        "--no-fund",
        "--no-progress",
      ];
    case "pnpm":
      return [
        "pnpm",
        "install",
        how.locked ? "--frozen-lockfile" : "--no-frozen-lockfile",
        how.isFull ? "--prod=false" : "--prod",
      ];
    case "yarn":
      return [
        "yarn",
        "install",
        ...(how.locked ? ["--frozen-lockfile"] : []),
        `--production=${!how.isFull}`,
        "--non-interactive",
        "--no-progress",
      ];
    case "yarn-modern":
      return how.isFull || !how.hasDev
        ? ["yarn", "install", ...(how.locked ? ["--immutable"] : [])]
        : ["yarn", "workspaces", "focus", "--production"];
    default:
      return manager.name satisfies never;
  }
}

function buildSteps({ manager, manifest }: NodeFacts): Step[] {
  if (manifest.scripts["build"] === undefined) return [];
  const step = scriptStep(manager, "build", "build");
  return [choosesSvelteAdapter(manifest) ? { ...step, env: { ...step.env, ...nodeAdapter } } : step];
}

// https://github.com/sveltejs/kit, adapter-auto's adapters.js: the one environment there for which it takes adapter-node.
const nodeAdapter = { GCP_BUILDPACKS: "1" };

/** SvelteKit as its scaffolder leaves it: the adapter is chosen, and installed, by where the build runs. */
function choosesSvelteAdapter({ devDependencies, dependencies }: PackageJson): boolean {
  return (
    devDependencies["@sveltejs/adapter-auto"] !== undefined || dependencies["@sveltejs/adapter-auto"] !== undefined
  );
}

function scriptStep(manager: PackageManager, name: string, stage: Step["stage"]): Step {
  const command = commandName(manager);
  return {
    title: `${stage === "build" ? "Building" : "Running"}: ${command} run ${name}`,
    stage,
    args: [command, "run", name],
    env: manager.name === "pnpm" ? pnpmEnv : {},
    tool: "script",
    otherwise: stage === "build" ? "build_script_failed" : "install_failed",
  };
}

function pruneSteps(manager: PackageManager): Step[] {
  const args: Record<PackageManager["name"], [string, ...string[]]> = {
    npm: ["npm", "prune", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"],
    pnpm: ["pnpm", "prune", "--prod", "--ignore-scripts"],
    yarn: [
      "yarn",
      "install",
      "--production=true",
      "--ignore-scripts",
      "--frozen-lockfile",
      "--non-interactive",
      "--no-progress",
    ],
    "yarn-modern": ["yarn", "workspaces", "focus", "--production"],
  };
  const env = { ...(manager.name === "pnpm" ? pnpmEnv : {}), HUSKY: "0" };
  return [
    {
      title: "Removing development dependencies",
      stage: "build",
      args: args[manager.name],
      env,
      tool: toolOf(manager),
      otherwise: "install_failed",
      quiet: true,
    },
  ];
}

function commandName(manager: PackageManager): string {
  return manager.name === "yarn-modern" ? "yarn" : manager.name;
}

function toolOf(manager: PackageManager): Tool {
  return manager.name === "yarn-modern" ? "yarn" : manager.name;
}
