import { posix } from "node:path";
import type { Detected } from "./detect.ts";
import { BuildRefused } from "./failures.ts";
import { denoPlan } from "./deno-plan.ts";
import { goPlan } from "./go-plan.ts";
import { javaPlan, type JavaOfMachine } from "./java-plan.ts";
import { makesFiles, nodePlan } from "./node-plan.ts";
import type { BuildPlan, Start, Step } from "./plan.ts";
import { requireCommands } from "./procfile.ts";
import { phpPlan } from "./php-plan.ts";
import { pythonPlan, type PythonOfMachine } from "./python-plan.ts";
import { rubyPlan } from "./ruby-plan.ts";
import { rustPlan } from "./rust-plan.ts";
import { dockerfilesIn, type SourceTree } from "./source-tree.ts";

/** What the builder offers besides Node.js. Null: the machine or image has none. */
export interface Machine {
  readonly python: PythonOfMachine | null;
  readonly java: JavaOfMachine;
  /** Versions of the installed compilers and interpreters. */
  readonly versions: Readonly<Partial<Record<Program, string>>>;
  readonly home: string;
}

export type Program = "go" | "rust" | "ruby" | "php" | "composer";

/** Plans the build of a detected application. Throws BuildRefused for what can't be built here, and for Procfile commands that could never start. */
export function planBuild(detected: Detected, tree: SourceTree, machine: Machine): BuildPlan {
  const { buildCommand } = detected;
  const own = languagePlan(detected, tree, machine);
  const plan = buildCommand === null ? own : { ...own, build: [commandStep(buildCommand)] };
  const isOpen =
    buildCommand !== null ||
    detected.kind === "java" ||
    (detected.kind === "node" && (detected.member !== undefined || makesFiles(tree)));
  const made = new Set(plan.makes);
  const isInstalled = (file: string) => plan.install !== null && file.startsWith(`${plan.install.folder}/`);
  if (!isOpen)
    requireCommands(detected.procfile, (file) => made.has(file) || isInstalled(file) || mayHave(tree, file), "detect");
  return { ...plan, notes: [...plan.notes, ...unusedDockerfile(tree, plan.name)] };
}

/** Where containers run, a Dockerfile at the root is built, so that the source has at most one elsewhere. */
function unusedDockerfile(tree: SourceTree, name: string): string[] {
  const [path] = dockerfilesIn(tree);
  if (path === undefined) return [];
  if (path === "Dockerfile") return [`The Dockerfile is not used: Berth builds this as a ${name}.`];
  const how = `"dockerfile": ${JSON.stringify(path)} in berth.json builds it where applications run in containers`;
  return [`${path} is not used: Berth builds this as a ${name}. ${how}.`];
}

function languagePlan(detected: Detected, tree: SourceTree, { python, java, versions, home }: Machine): BuildPlan {
  switch (detected.kind) {
    case "node":
      return nodePlan(tree, {
        ...{ hasBuildCommand: detected.buildCommand !== null, commands: commandsOf(detected) },
        member: detected.member,
      });
    case "python":
      if (python === null) throw new BuildRefused("python_missing");
      return pythonPlan({ ...python, tree, home });
    case "go":
      if (versions.go === undefined) throw new BuildRefused("go_missing");
      return goPlan(tree, versions.go, detected.procfile);
    case "rust":
      if (versions.rust === undefined) throw new BuildRefused("rust_missing");
      return rustPlan(tree, versions.rust, detected.procfile);
    case "deno":
      return denoPlan(tree);
    case "ruby":
      if (versions.ruby === undefined) throw new BuildRefused("ruby_missing");
      return rubyPlan(tree, versions.ruby);
    case "php":
      if (versions.php === undefined) throw new BuildRefused("php_missing");
      return phpPlan(tree, versions.php, versions.composer !== undefined);
    case "java":
      return javaPlan(tree, java);
    case "static":
      return { ...bare, kind: "static", name: "Static files", start: () => siteStart(detected.siteFolder ?? ".") };
    case "procfile":
      return { ...bare, kind: "procfile", name: "Procfile", start: nothingToStart };
    default:
      return detected.kind satisfies never;
  }
}

function commandsOf({ procfile: { web, release, others } }: Detected): string[] {
  return [web, release, ...Object.values(others)].flatMap((command) => command ?? []);
}

function commandStep(command: string): Step {
  const args = ["sh", "-c", command] as const;
  return {
    title: `Building: ${command}`,
    stage: "build",
    args: [...args],
    env: {},
    tool: "script",
    otherwise: "build_script_failed",
  };
}

const bare = {
  notes: [],
  install: null,
  build: [],
  prune: [],
  tools: [{ tool: "node", wish: null, inRelease: true }],
  env: {},
} as const;

function siteStart(folder: string): Start {
  const because = posix.join(folder, "index.html");
  return { how: "static", folder, fallback: "none", because };
}

function nothingToStart(): Start {
  throw new BuildRefused("no_start_command");
}

/** Returns whether the source may have something at this path: a file, a folder, or anything that a link on the way may lead to. */
function mayHave(tree: SourceTree, path: string): boolean {
  if (path === "." || tree.has(path)) return true;
  const parts = path.split("/");
  const isBehindLink = parts.some((_, index) => tree.has(parts.slice(0, index).join("/")));
  return isBehindLink || tree.paths.some((each) => each.startsWith(`${path}/`));
}

export const noJava: JavaOfMachine = { jdks: [], tools: { maven: false, gradle: false } };
