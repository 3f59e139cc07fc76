import { askedVersions, versionNotes } from "./asked-versions.ts";
import { BuildRefused } from "./failures.ts";
import { asRecord } from "./package-json.ts";
import type { BuildPlan, Install, Start, Step } from "./plan.ts";
import type { SourceTree } from "./source-tree.ts";

const configFiles = ["deno.json", "deno.jsonc"];
const otherLocks = ["package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"];

export function denoPlan(tree: SourceTree): BuildPlan {
  const config = readConfig(tree);
  const entry = entryOf(tree, config);
  const asked = askedVersions(tree, "deno");
  const wish = asked.find(({ range }) => range !== null)?.range ?? "2";
  return {
    kind: "deno",
    name: "Deno app",
    notes: [
      ...(tree.has("deno.lock") ? [] : ["No deno.lock: versions may change from build to build. Commit one."]),
      ...versionNotes(asked, "Deno", wish),
    ],
    tools: [{ tool: "deno", wish, inRelease: true }],
    install: installOf(tree, config, entry),
    build: config.tasks["build"] === undefined ? [] : [step("Building", ["deno", "task", "build"])],
    prune: [],
    env: denoEnv,
    start: () => startOf(tree, config, entry),
  };
}

/** Returns whether this is a Deno application. With a Node.js package manager's lock file it is not: Deno may be used in addition. */
export function isDeno(tree: SourceTree): boolean {
  if (tree.has("deno.lock")) return !otherLocks.some((file) => tree.has(file));
  return configFiles.some((file) => tree.has(file)) && !tree.has("package.json");
}

type DenoConfig = ReturnType<typeof readConfig>;

function readConfig(tree: SourceTree) {
  const file = configFiles.find((name) => tree.has(name));
  const text = file === undefined ? "{}" : (tree.text(file) ?? "{}");
  const value = parseCommented(text, file ?? "deno.json");
  const tasks = Object.entries(asRecord(value["tasks"])).flatMap(([name, task]) => {
    const command = typeof task === "string" ? task : asRecord(task)["command"];
    return typeof command === "string" ? [[name, command] as const] : [];
  });
  const usesNodeModules = value["nodeModulesDir"] !== undefined || tree.has("package.json");
  return { text, tasks: Object.fromEntries(tasks), usesNodeModules };
}

/** Parses JSON with comments and trailing commas. */
function parseCommented(text: string, file: string): Record<string, unknown> {
  const withoutComments = text.replace(
    /("(?:[^"\\\n]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (_, quoted?: string) => quoted ?? "",
  );
  const plain = withoutComments.replace(/("(?:[^"\\\n]|\\.)*")|,(?=\s*[\]}])/g, (_, quoted?: string) => quoted ?? "");
  try {
    return asRecord(JSON.parse(plain));
  } catch (error) {
    const summary = `${file} is not valid JSON: ${(error as Error).message}`;
    throw new BuildRefused("manifest_invalid", { summary });
  }
}

const entries = ["main", "server", "index", "app", "mod"].flatMap((name) =>
  ["", "src/"].flatMap((folder) => ["ts", "tsx", "js"].map((ending) => `${folder}${name}.${ending}`)),
);

/** Returns the module to run: the one that the `start` task names, else one with a usual name. */
function entryOf(tree: SourceTree, { tasks }: DenoConfig): string | null {
  const words = (tasks["start"] ?? "").split(/\s+/).map((word) => word.replace(/^\.\//, ""));
  const named = words.find((word) => /^[\w./@-]+\.[cm]?[jt]sx?$/.test(word) && tree.has(word));
  return named ?? entries.find((path) => tree.has(path)) ?? null;
}

// Part of the release, so that the application runs with exactly what was downloaded.
const folder = ".deno";
const denoEnv = { DENO_DIR: `/app/${folder}`, DENO_NO_UPDATE_CHECK: "1", DENO_NO_PROMPT: "1" };

/** The install is reusable with a lock file, unless packages also go into node_modules. */
function installOf(tree: SourceTree, config: DenoConfig, entry: string | null): Install {
  const isLocked = tree.has("deno.lock");
  const digest = tree.lock("deno.lock")?.digest;
  const args = [...["install", ...(isLocked ? ["--frozen"] : [])], ...(entry === null ? [] : ["--entrypoint", entry])];
  const install = step("Installing dependencies", ["deno", ...args]);
  return {
    folder,
    inputs: digest === undefined || config.usesNodeModules ? null : [digest, config.text, args],
    steps: [{ ...install, stage: "install", tool: "deno", otherwise: "install_failed" }],
    npmLockFile: null,
    again: [],
  };
}

function step(title: string, args: Step["args"]): Step {
  const shared = { stage: "build", env: denoEnv, tool: "script", otherwise: "build_script_failed" } as const;
  return { ...shared, title: `${title}: ${args.join(" ")}`, args };
}

// `Deno.serve` without an explicit port listens on this address.
const where = "DENO_SERVE_ADDRESS=tcp:0.0.0.0:$PORT";

function startOf(tree: SourceTree, { tasks }: DenoConfig, entry: string | null): Start {
  if (tasks["start"] !== undefined)
    return { how: "command", command: `${where} deno task start`, because: "the `start` task of deno.json" };
  if (entry === null) throw new BuildRefused("no_start_command");
  const serves = /^export default\b/m.test(tree.text(entry) ?? "");
  const command = serves
    ? `deno serve --allow-all --host 0.0.0.0 --port $PORT ${entry}`
    : `${where} deno run --allow-all ${entry}`;
  return { how: "command", command, because: entry };
}
