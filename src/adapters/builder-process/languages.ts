import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { run, systemPath } from "../../kit/exec.ts";
import { BuildRefused } from "./failure-codes.ts";
import type { ProcessBuilderOptions } from "./options.ts";
import type { Detected } from "./plan/detect.ts";
import { goPlan, goStart } from "./plan/go-plan.ts";
import { nodePlan } from "./plan/node-plan.ts";
import { nodeStart, type BuiltFiles } from "./plan/node-start.ts";
import { nodeWish } from "./plan/node-version.ts";
import { choosePackageManager } from "./plan/package-manager.ts";
import { readPackageJson } from "./plan/package-json.ts";
import type { Plan, Start } from "./plan/plan.ts";
import { pythonPlan } from "./plan/python-plan.ts";
import { pythonStart } from "./plan/python-start.ts";
import { home, isPlain } from "./steps/workspace.ts";
import type { SourceTree } from "./source/source-tree.ts";
import { nodeToolchain, packageManagerToolchain, type Toolchain } from "./tools/toolchain.ts";

/** A language's decisions, with the tools they need made ready. */
export interface Prepared {
  readonly plan: Plan;
  /** Seen by the build; those with `inRelease` by the release too. */
  readonly tools: readonly Toolchain[];
  readonly releaseTools: readonly Toolchain[];
  /** The release's environment, beneath the project's own. */
  readonly env: Readonly<Record<string, string>>;
  /** What to do when nothing tells how to start, where more is known than usual. */
  readonly startHint?: string;
  /** Asked when the build is over. */
  readonly start: (files: BuiltFiles) => Start | null;
}

/** Makes a detected application's plan. Refuses what cannot be built here. */
export async function prepare(options: ProcessBuilderOptions, detected: Detected, tree: SourceTree): Promise<Prepared> {
  switch (detected.kind) {
    case "node":
      return prepareNode(options, tree);
    case "python":
      return preparePython(options, tree);
    case "go":
      return prepareGo(options, tree);
    case "static":
      return prepareSite(options, detected.siteFolder ?? ".");
    case "procfile":
      return prepareFiles(options);
    default:
      return detected.kind satisfies never;
  }
}

const svelteHint =
  "@sveltejs/adapter-auto made no server: install @sveltejs/adapter-node (or adapter-static) and name it in the configuration of SvelteKit.";
// Fastify's own start command listens on the loopback alone unless it is told otherwise; HOST it does not read.
const nodeEnv = {
  FASTIFY_ADDRESS: "0.0.0.0",
  NODE_ENV: "production",
  npm_config_cache: "/tmp/.npm",
  npm_config_update_notifier: "false",
};

// What SvelteKit's server believes about a request's address: nothing but the edge reaches it, and the edge replaces these headers.
const svelteEnv = {
  PROTOCOL_HEADER: "x-forwarded-proto",
  HOST_HEADER: "x-forwarded-host",
  ADDRESS_HEADER: "x-forwarded-for",
};

async function prepareNode(options: ProcessBuilderOptions, tree: SourceTree): Promise<Prepared> {
  const manifest = readPackageJson(tree);
  const manager = choosePackageManager(manifest, tree);
  const wish = nodeWish(manifest, tree);
  const packages = packageOptions(options);
  const node = await nodeToolchain(packages, wish);
  const managerTool = await packageManagerToolchain(packages, manager, node.version);
  const notes = wish === null ? [] : [`The application asks for Node.js ${wish.from}`];
  const plan = nodePlan({
    manifest,
    tree,
    manager,
    nodeVersion: node.version,
    managerVersion: managerTool.version,
    notes,
  });
  const tools = [node, managerTool];
  const hint = manifest.devDependencies["@sveltejs/adapter-auto"] === undefined ? {} : { startHint: svelteHint };
  const env = manifest.devDependencies["@sveltejs/kit"] === undefined ? nodeEnv : { ...nodeEnv, ...svelteEnv };
  return { plan, tools, releaseTools: tools, env, start: (files) => nodeStart(manifest, files), ...hint };
}

// gunicorn and uvicorn take the edge's word for a request's scheme and address; nothing else reaches them.
const pythonEnv = { PYTHONUNBUFFERED: "1", PYTHONDONTWRITEBYTECODE: "1", FORWARDED_ALLOW_IPS: "*" };

async function preparePython(options: ProcessBuilderOptions, tree: SourceTree): Promise<Prepared> {
  const interpreter = options.pythonBin;
  const version = interpreter === null ? null : await versionOf(interpreter, ["--version"], /Python (\d+\.\d+\.\d+)/);
  if (interpreter === null || version === null) throw new BuildRefused("python_missing");
  const settings = JSON.stringify(options.packageEnv);
  const plan = pythonPlan({ tree, interpreter, version, home, settings });
  const env = { ...pythonEnv, VIRTUAL_ENV: `${home}/.venv` };
  return { plan, tools: [], releaseTools: [], env, start: () => pythonStart(tree) };
}

async function prepareGo(options: ProcessBuilderOptions, tree: SourceTree): Promise<Prepared> {
  const root = options.goRoot;
  const version =
    root === null ? null : await versionOf(join(root, "bin", "go"), ["version"], /go(\d+\.\d+(?:\.\d+)?)/);
  if (root === null || version === null) throw new BuildRefused("go_missing");
  const go = { name: "go", version, source: root, target: "/opt/go" };
  return { plan: goPlan(tree, version), tools: [go], releaseTools: [], env: {}, start: () => goStart };
}

async function prepareSite(options: ProcessBuilderOptions, folder: string): Promise<Prepared> {
  const node = await nodeToolchain(packageOptions(options), null);
  const start: Start = {
    how: "static",
    folder,
    fallback: "none",
    because: folder === "." ? "index.html" : `${folder}/index.html`,
  };
  return {
    plan: { ...bare, kind: "static", name: "Static files" },
    tools: [],
    releaseTools: [node],
    env: {},
    start: () => start,
  };
}

async function prepareFiles(options: ProcessBuilderOptions): Promise<Prepared> {
  const node = await nodeToolchain(packageOptions(options), null);
  return {
    plan: { ...bare, kind: "procfile", name: "Procfile" },
    tools: [node],
    releaseTools: [node],
    env: {},
    start: () => null,
  };
}

const bare = { notes: [], install: null, build: [], prune: [] };

/** The files of a finished build, seen without following links. */
export function builtFiles(app: string): BuiltFiles {
  return {
    has: (path) => isPlain(app, path, "file"),
    folders: (path) =>
      isPlain(app, path, "folder")
        ? readdirSync(join(app, path)).filter((name) => lstatSync(join(app, path, name)).isDirectory())
        : [],
  };
}

function packageOptions({ toolsDir, nodeBin, npmDir, packageEnv, ownPackageEnv, caFile }: ProcessBuilderOptions) {
  const patience = { npm_config_fetch_retries: "1", npm_config_fetch_retry_mintimeout: "1000" };
  const certificates = caFile === undefined ? {} : { NODE_EXTRA_CA_CERTS: caFile };
  const env = {
    PATH: systemPath,
    HOME: toolsDir,
    npm_config_cache: join(toolsDir, ".npm"),
    ...patience,
    ...certificates,
    ...(ownPackageEnv ?? packageEnv),
  };
  return { folder: toolsDir, nodeBin, npmDir, env };
}

async function versionOf(file: string, args: readonly string[], pattern: RegExp): Promise<string | null> {
  const result = await run({ file, args }, { timeoutMs: 10_000 }).catch(() => null);
  return pattern.exec(`${result?.stdout}${result?.stderr}`)?.[1] ?? null;
}
