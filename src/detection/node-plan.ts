import { BuildRefused } from "./failures.ts";
import { commandName, envOf, installArgs, toolOf } from "./install-commands.ts";
import { nodeBuild, type NodeBuild } from "./node-build.ts";
import { nodeStart, startScript } from "./node-start.ts";
import { nodeWish } from "./node-version.ts";
import { readPackageJson, type PackageJson } from "./package-json.ts";
import { choosePackageManager, type PackageManager } from "./package-manager.ts";
import type { BuildPlan, BuiltFiles, StandaloneInstall, Start, Step } from "./plan.ts";
import { treeBelow, type SourceTree } from "./source-tree.ts";
import { commandIn, filesBelow, startIn } from "./workspace-member.ts";

interface NodeFacts {
  readonly manifest: PackageJson;
  readonly tree: SourceTree;
  /** The application's folder in the workspace that `tree` is; undefined: the application is the whole tree. */
  readonly member: string | undefined;
  readonly manager: PackageManager;
  readonly build: NodeBuild | null;
  /** Development dependencies that the application's commands use after the build. */
  readonly developmentTools: readonly string[];
}

interface Commands {
  /** Whether the project's own command replaces the build. */
  readonly hasBuildCommand?: boolean;
  /** The commands of the application's processes and its release command. */
  readonly commands?: readonly string[];
  readonly member?: string | undefined;
}

export function nodePlan(
  tree: SourceTree,
  { hasBuildCommand = false, commands = [], member }: Commands = {},
): BuildPlan {
  const around = readPackageJson(tree);
  const own = member === undefined ? tree : treeBelow(tree, member);
  const manifest = member === undefined ? around : { ...readPackageJson(own), hasWorkspaces: true };
  const [manager, build] = [choosePackageManager(around, tree), nodeBuild(manifest, own)];
  const facts = { manifest, tree, member, manager, build, developmentTools: developmentTools(manifest, commands) };
  const asked = nodeWish(manifest, own);
  const { wish, notes } = asked.wish === null ? nodeWish(around, tree) : asked;
  refuseLostWorkspace(facts);
  const keepsAll = facts.developmentTools.length > 0;
  const isFull = hasBuildCommand || keepsAll || needsDevDependencies(facts);
  return {
    kind: "node",
    name: facts.manager.name === "bun" ? "Bun app" : "Node.js app",
    notes: [
      ...(wish === null ? [] : [`The application requires Node.js ${wish.from}`]),
      ...notes,
      ...notesOn(facts),
      ...(choosesSvelteAdapter(manifest) ? ["SvelteKit: @sveltejs/adapter-auto uses @sveltejs/adapter-node"] : []),
    ],
    tools: [
      { tool: "node", wish, inRelease: true },
      { tool: "package-manager", manager: facts.manager, inRelease: true },
    ],
    env: uses(manifest, "@sveltejs/kit") ? { ...nodeEnv, ...svelteEnv } : nodeEnv,
    start: (files) => start(facts, files),
    install: isEmpty(facts)
      ? null
      : {
          folder: "node_modules",
          inputs: installInputs(facts, isFull),
          steps: [installStep(facts, isFull)],
          npmLockFile: facts.manager.name === "npm" ? facts.manager.lockFile : null,
          again: ownScripts(facts.manifest).map((name) => scriptStep(facts.manager, name, "install")),
          ...standalone(facts, isFull),
        },
    build: buildSteps(facts, uses(around, "turbo") && tree.has("turbo.json")),
    prune:
      isFull && !keepsAll && (member !== undefined || Object.keys(manifest.devDependencies).length > 0)
        ? pruneSteps(facts)
        : [],
  };
}

/** Throws BuildRefused if a dependency is a package of a workspace that is not in this folder. */
function refuseLostWorkspace({ manifest, tree }: NodeFacts): void {
  const declared = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
  const lost = declared.find(([, spec]) => spec.startsWith("workspace:"))?.[0];
  if (lost === undefined || manifest.hasWorkspaces || tree.has("pnpm-workspace.yaml")) return;
  throw new BuildRefused("dependency_not_found", {
    stage: "detect",
    summary: `${lost} is a package of the workspace around this folder, of which Berth builds nothing else.`,
    hint: `A folder is built in its workspace if that is the repository's root and lists the folder, which has no lock file or Dockerfile of its own. Else build the whole repository: \`berth projects settings --root none\`, and in berth.json at its root \`"build"\` (such as \`pnpm --filter ${manifest.name ?? "web"}... run build\`) and \`"start"\` (such as \`cd apps/web && npm start\`).`,
  });
}

// FASTIFY_ADDRESS: without it, Fastify's own start command listens on the loopback only; it does not read HOST.
const nodeEnv = {
  FASTIFY_ADDRESS: "0.0.0.0",
  NODE_ENV: "production",
  npm_config_cache: "/tmp/.npm",
  npm_config_update_notifier: "false",
};

// Headers from which SvelteKit's server takes the request's origin and client address. They are safe to trust: only the edge reaches the
// server, and it replaces them.
const svelteEnv = {
  PROTOCOL_HEADER: "x-forwarded-proto",
  HOST_HEADER: "x-forwarded-host",
  ADDRESS_HEADER: "x-forwarded-for",
};

const svelteHint =
  "@sveltejs/adapter-auto made no server: install @sveltejs/adapter-node (or adapter-static) and name it in the configuration of SvelteKit.";

function start({ manifest, manager, build, member }: NodeFacts, files: BuiltFiles): Start {
  const own = member === undefined ? files : filesBelow(files, member);
  const found = manager.name === "bun" ? bunStart(manifest, own) : nodeStart(manifest, own);
  if (found !== null) return member === undefined ? found : startIn(member, found);
  const code = build === null ? "no_start_command" : "build_output_missing";
  throw new BuildRefused(code, choosesSvelteAdapter(manifest) ? { hint: svelteHint } : {});
}

function notesOn({ manager, manifest, developmentTools: used }: NodeFacts): readonly string[] {
  const hasDependencies = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }).length > 0;
  const isLoose = manager.lockFile === null && hasDependencies;
  return [
    ...(isLoose ? ["No lock file: versions may change from build to build. Commit one."] : []),
    ...(used.length > 0
      ? [`Development dependencies stay in the image, because its commands use ${used.join(", ")}`]
      : []),
    ...manager.notes,
  ];
}

/** Returns whether a build or install script of the application may create files. */
export function makesFiles(tree: SourceTree): boolean {
  const manifest = readPackageJson(tree);
  return needsDevDependencies({ manifest, build: nodeBuild(manifest, tree) });
}

const lifecycle = ["preinstall", "install", "postinstall", "prepublish", "preprepare", "prepare", "postprepare"];
// Tools that only set up git hooks on a developer's machine.
const gitHookTools = /^(?:npx )?(?:husky|lefthook|simple-git-hooks|is-ci \|\| husky)\b/;

function ownInstallScripts(manifest: PackageJson): string[] {
  return lifecycle.filter((name) => manifest.scripts[name] !== undefined);
}

/** Returns the application's install scripts in their order, without those that only set up git hooks. */
function ownScripts(manifest: PackageJson): string[] {
  return ownInstallScripts(manifest).filter((name) => name !== "preinstall" && !isGitHook(manifest, name));
}

const isGitHook = ({ scripts }: PackageJson, name: string): boolean => gitHookTools.test(scripts[name] as string);

/** Returns whether development dependencies are needed: a build or install script of the application may use them. */
function needsDevDependencies({ manifest, build }: Pick<NodeFacts, "manifest" | "build">): boolean {
  return build !== null || manifest.hasWorkspaces || ownInstallScripts(manifest).length > 0;
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

/** Returns null if the result depends on more than the lock file: workspaces, folders, patches, a link, or a file that is too large. */
function installInputs(facts: NodeFacts, isFull: boolean): readonly unknown[] | null {
  const { manifest, manager, tree } = facts;
  const patches = ownInstallScripts(manifest).some((name) => (manifest.scripts[name] as string).includes("patch"));
  const specs = Object.values({ ...manifest.dependencies, ...manifest.devDependencies });
  const usesFolders = specs.some((spec) => /^(?:file|link|portal|workspace|patch):/.test(spec));
  if (manager.lockFile === null || manifest.hasWorkspaces || tree.has("pnpm-workspace.yaml") || patches || usesFolders)
    return null;
  const deciding = [manager.lockFile, ".npmrc", ".yarnrc", ".yarnrc.yml"].filter((file) => tree.has(file));
  const digests = deciding.map((file) => tree.lock(file)?.digest);
  if (digests.includes(undefined)) return null;
  return [manager.name, isFull, facts.developmentTools.length > 0, manifest.installInputs, deciding, digests];
}

/** Returns {} if the application's own scripts or settings influence the install, or it has both of npm's lock files. */
function standalone(facts: NodeFacts, isFull: boolean): { standalone?: StandaloneInstall } {
  const { manifest, manager, tree } = facts;
  const scripts = ownInstallScripts(manifest).filter((name) => !onlyGitHooks.test(manifest.scripts[name] as string));
  const others = [".npmrc", "binding.gyp", ...npmLockFiles.filter((name) => name !== manager.lockFile)];
  if (manager.name !== "npm" || installInputs(facts, isFull) === null) return {};
  if (scripts.length > 0 || others.some((file) => tree.has(file))) return {};
  const step = installStep(facts, isFull);
  return {
    standalone: { manifest: manifest.installManifest, step: { ...step, args: [...step.args, "--ignore-scripts"] } },
  };
}

// Matches scripts that run a git hook tool and nothing else.
const onlyGitHooks = /^(?:is-ci \|\| )?(?:npx )?(?:husky|lefthook|simple-git-hooks)(?: install)?$/;
const npmLockFiles = ["package-lock.json", "npm-shrinkwrap.json"];

function installStep({ manager, manifest, member }: NodeFacts, isFull: boolean): Step {
  const locked = manager.lockFile !== null;
  const how = { locked, isFull, hasDev: Object.keys(manifest.devDependencies).length > 0 };
  const step = (args: Step["args"]): Step => ({
    title: `Installing dependencies: ${args.filter((arg) => !quietFlags.has(arg)).join(" ")}`,
    stage: "install",
    args,
    env: { ...envOf(manager), HUSKY: "0" },
    tool: toolOf(manager),
    otherwise: "install_failed",
  });
  const filters = member !== undefined && manager.name === "pnpm" ? ["--filter", ".", ...withOthers(member)] : [];
  const chosen = step([...installArgs(manager, how), ...filters] as [string, ...string[]]);
  if (manager.name !== "npm" || !locked) return chosen;
  const loose = step([...installArgs(manager, { ...how, locked: false }), "--no-save"]);
  const fits = (output: string) => lacksOnlyIndirect(output, manifest);
  return { ...chosen, instead: { fits, note: incompleteLock, step: loose } };
}

const incompleteLock =
  "The lock file agrees with package.json, but lacks packages that others need (often optional ones for other systems). npm installs their newest matching versions, and all others as locked.";

/**
 * Returns whether the lock file lacks only indirect dependencies. npm writes such files, which its own `npm ci` refuses, if optional
 * packages for other systems were unavailable; then nothing that package.json itself names is missing or differs.
 */
function lacksOnlyIndirect(output: string, { dependencies, devDependencies }: PackageJson): boolean {
  const missing = [...output.matchAll(/Missing: (@?[^@\s]+)@\S* from lock file/g)].map((match) => match[1] as string);
  const isOwn = (name: string) => dependencies[name] !== undefined || devDependencies[name] !== undefined;
  return missing.length > 0 && !missing.some(isOwn) && !/Invalid: /.test(output);
}

const quietFlags = new Set([
  "--no-audit",
  "--no-fund",
  "--no-progress",
  "--backend=copyfile",
  "--no-save",
  "--no-update-notifier",
]);
/** Selects the workspace's packages that this one depends on, and this one. */
const withOthers = (member: string) => ["--filter", `{./${member}}...`];

function buildSteps({ manager, manifest, build, member }: NodeFacts, usesTurbo: boolean): Step[] {
  if (build === null) return [];
  if (member !== undefined) return [memberBuild({ manager, manifest, member }, build, usesTurbo)];
  if ("command" in build) return [{ ...scriptStep(manager, "", "build"), ...programStep(build.command) }];
  const step = scriptStep(manager, build.script, "build");
  return [choosesSvelteAdapter(manifest) ? { ...step, env: { ...step.env, ...nodeAdapter } } : step];
}

const programStep = (args: Step["args"]) => ({ title: `Building: ${args.join(" ")}`, args });

// The only environment for which adapter-auto chooses adapter-node (https://github.com/sveltejs/kit, adapter-auto's adapters.js).
const nodeAdapter = { GCP_BUILDPACKS: "1" };

/** Returns whether SvelteKit uses its scaffolder's default, which chooses and installs the adapter depending on where the build runs. */
function choosesSvelteAdapter(manifest: PackageJson): boolean {
  return uses(manifest, "@sveltejs/adapter-auto");
}

/** Also builds the packages that the member depends on, by what the workspace has for that. */
function memberBuild(
  { manager, manifest, member }: Pick<NodeFacts, "manager" | "manifest"> & { readonly member: string },
  build: NodeBuild,
  usesTurbo: boolean,
): Step {
  const script = "script" in build ? build.script : "build";
  const own = "script" in build ? [commandName(manager), "run", script] : ["npx", "--no", ...build.command];
  const args = ((): Step["args"] => {
    if (usesTurbo && "script" in build) return ["turbo", "run", script, `--filter=./${member}`];
    if (manager.name === "pnpm" && "script" in build) return ["pnpm", ...withOthers(member), "run", script];
    if (manager.name === "yarn-modern" && "script" in build && manifest.name !== null)
      return ["yarn", "workspaces", "foreach", "-Rt", "--from", manifest.name, "run", script];
    return ["sh", "-c", commandIn(member, own.join(" "))];
  })();
  const env = { TURBO_TELEMETRY_DISABLED: "1", ...(choosesSvelteAdapter(manifest) ? nodeAdapter : {}) };
  const step = scriptStep(manager, script, "build");
  const title = `Building: ${args[0] === "sh" ? args[2] : args.join(" ")}`;
  return { ...step, title, args, env: { ...step.env, ...env } };
}

function uses({ devDependencies, dependencies }: PackageJson, name: string): boolean {
  return devDependencies[name] !== undefined || dependencies[name] !== undefined;
}

function scriptStep(manager: PackageManager, name: string, stage: Step["stage"]): Step {
  const command = commandName(manager);
  return {
    title: `${stage === "build" ? "Building" : "Running"}: ${command} run ${name}`,
    stage,
    args: [command, "run", name],
    env: envOf(manager),
    tool: "script",
    otherwise: stage === "build" ? "build_script_failed" : "install_failed",
  };
}

function pruneSteps({ manager, manifest, member }: NodeFacts): Step[] {
  const args: Record<PackageManager["name"], [string, ...string[]] | null> = {
    npm: ["npm", "prune", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"],
    pnpm:
      member === undefined
        ? ["pnpm", "prune", "--prod", "--ignore-scripts"]
        : ["pnpm", "install", "--prod", "--frozen-lockfile", "--offline", "--ignore-scripts", ...withOthers(member)],
    yarn: [
      "yarn",
      "install",
      "--production=true",
      "--ignore-scripts",
      "--frozen-lockfile",
      "--non-interactive",
      "--no-progress",
    ],
    "yarn-modern": [
      "yarn",
      "workspaces",
      "focus",
      ...(member === undefined ? [] : [manifest.name ?? ""]),
      "--production",
    ],
    // Bun has no command that removes development dependencies, and a second install would not remove them either.
    bun: null,
  };
  const env = { ...envOf(manager), HUSKY: "0" };
  const chosen = args[manager.name];
  if (chosen === null) return [];
  return [
    {
      title: "Removing development dependencies",
      stage: "build",
      args: chosen,
      env,
      tool: toolOf(manager),
      otherwise: "install_failed",
      quiet: true,
    },
  ];
}

/** Like `nodeStart`, but Bun runs the sources directly, TypeScript included. */
function bunStart(manifest: PackageJson, files: BuiltFiles): Start | null {
  return startScript(manifest) ?? entry(manifest, files) ?? nodeStart(manifest, files);
}

function entry({ module, main }: PackageJson, files: BuiltFiles): Start | null {
  const named = [module, main].flatMap((path) => (path === null ? [] : [path.replace(/^\.\//, "")]));
  const plain = named.filter((path) => /^[\w./@-]+$/.test(path) && !path.split("/").includes(".."));
  const found = [...plain, ...entries].find((path) => files.has(path));
  return found === undefined ? null : { how: "command", command: `bun run ${found}`, because: found };
}

const names = ["index", "src/index", "server", "src/server", "app", "src/app"];
const entries = names.flatMap((name) => [`${name}.ts`, `${name}.tsx`, `${name}.js`]);

/** Returns the development dependencies whose programs the application's commands run after the build, such as a release command's. */
function developmentTools(manifest: PackageJson, commands: readonly string[]): string[] {
  const start = startScript(manifest);
  const words = new Set([...commands, ...(start?.how === "command" ? [start.command] : [])].flatMap(wordsIn));
  const scripts = new Map(Object.entries(manifest.scripts));
  // Scripts may run scripts; each is looked up once.
  for (const word of words) for (const inner of wordsIn(scripts.get(word) ?? "")) words.add(inner);
  return Object.keys(manifest.devDependencies).filter((name) => programsOf(name).some((program) => words.has(program)));
}

const wordsIn = (command: string): string[] =>
  command
    .split(/[\s=;&|()'"`]+/)
    .map((word) => word.replace(/^(?:\.\/)?node_modules\/(?:\.bin\/)?/, ""))
    .filter(Boolean);

/** Returns the programs of a package: those of its own name, with or without the usual affixes. */
function programsOf(name: string): string[] {
  const [own = "", scope = ""] = name.split("/").toReversed();
  return [name, own, own.replace(/-cli$/, ""), ...(own === "cli" ? [scope.slice(1)] : []), ...(named.get(name) ?? [])];
}

const named = new Map([
  ["typescript", ["tsc"]],
  ["ts-node", ["ts-node/register"]],
]);
