import type { BuildCommands } from "../ports/builder.ts";
import { BuildRefused, type FailureDetail } from "./failures.ts";
import { commandIn } from "./workspace-member.ts";
import { dockerfilesIn, treeBelow, type SourceTree } from "./source-tree.ts";
import { isDeno } from "./deno-plan.ts";
import { isGo } from "./go-plan.ts";
import { isJava } from "./java-plan.ts";
import { isPhp } from "./php-plan.ts";
import type { Kind } from "./plan.ts";
import { parseProcfile, withCommands, type Procfile } from "./procfile.ts";
import { isPython } from "./python-plan.ts";
import { isRuby } from "./ruby-plan.ts";
import { isRust } from "./rust-plan.ts";

export interface Detected {
  readonly kind: Kind;
  /** The commands of all process types, from the Procfile and the project's settings. */
  readonly procfile: Procfile;
  /** Replaces the language's own build steps; null: those run. */
  readonly buildCommand: string | null;
  /** The folder of a static site without any language; else null. */
  readonly siteFolder: string | null;
  /** See `BuildCommands`. All commands change to this folder first. */
  readonly member: string | undefined;
}

/**
 * Detects what the source is: Go, Rust, Java, Ruby, PHP, Python, Deno, Node, static files, or only what a Procfile runs. A Procfile's
 * commands replace the language's own start; the language's install still runs.
 */
export function detect(tree: SourceTree, commands: BuildCommands = {}): Detected {
  const { member } = commands;
  if (member !== undefined) return detectMember(treeBelow(tree, member), { ...commands, member });
  const procfile = withCommands(parseProcfile(tree.text("Procfile") ?? ""), commands);
  const siteFolder = tree.has("index.html") ? "." : tree.has("public/index.html") ? "public" : null;
  return {
    kind: kindOf(tree, procfile, siteFolder),
    procfile,
    siteFolder,
    buildCommand: commands.build ?? null,
    member,
  };
}

function detectMember(own: SourceTree, commands: BuildCommands & { readonly member: string }): Detected {
  const { member } = commands;
  const procfile = withCommands(parseProcfile(own.text("Procfile") ?? ""), commands);
  const inMember = (command: string | null) => (command === null ? null : commandIn(member, command));
  return {
    ...{ kind: "node", siteFolder: null, member, buildCommand: inMember(commands.build ?? null) },
    procfile: {
      ...{ web: inMember(procfile.web), release: inMember(procfile.release) },
      others: Object.fromEntries(
        Object.entries(procfile.others).map(([type, each]) => [type, commandIn(member, each)]),
      ),
    },
  };
}

function kindOf(tree: SourceTree, procfile: Procfile, siteFolder: string | null): Kind {
  if (isGo(tree)) return "go";
  if (isRust(tree)) return "rust";
  if (isJava(tree)) return "java";
  if (isRuby(tree)) return "ruby";
  if (isPhp(tree)) return "php";
  if (isPython(tree)) return "python";
  if (isDeno(tree)) return "deno";
  if (tree.has("package.json")) return "node";
  if (procfile.web !== null) return "procfile";
  if (siteFolder !== null) return "static";
  if (Object.keys(procfile.others).length > 0) return "procfile";
  if (procfile.release !== null) {
    throw new BuildRefused("no_start_command", {
      summary: "The Procfile has only a `release` command, and no other file says what to run.",
    });
  }
  if (tree.has("Dockerfile")) throw new BuildRefused("dockerfile_not_supported");
  throw new BuildRefused("nothing_to_run", elsewhere(tree));
}

const deciding = [
  "package.json",
  "requirements.txt",
  "pyproject.toml",
  "go.mod",
  "Cargo.toml",
  "pom.xml",
  "build.gradle",
  "build.gradle.kts",
  "deno.json",
  "Gemfile",
  "composer.json",
  "Procfile",
  "index.html",
];

/** Guesses what was meant: a misspelled Procfile, or an application in a subfolder. */
function elsewhere(tree: SourceTree): FailureDetail {
  const misspelt = tree.paths.find((path) => /^procfile(?:\.\w+)?$/i.test(path));
  if (misspelt !== undefined) {
    return {
      summary: `No file says what to run: there is ${misspelt}, but no Procfile.`,
      hint: `Rename it: \`git mv ${misspelt} Procfile\`, commit and push again.`,
    };
  }
  const inFolder = /^((?:[\w.-]+\/){1,2})([^/]+)$/;
  const found = tree.paths.flatMap((path) => {
    const [, folder = "", name = ""] = inFolder.exec(path) ?? [];
    return deciding.includes(name) && !folder.includes("node_modules/") ? [{ path, folder: folder.slice(0, -1) }] : [];
  });
  const first = found[0];
  const [dockerfile] = dockerfilesIn(tree);
  if (first === undefined && dockerfile !== undefined)
    return {
      summary: `No file at the root of the repository says what to run; there is ${dockerfile}.`,
      hint: `Where applications run in containers, a berth.json with "dockerfile": ${JSON.stringify(dockerfile)} builds it. Elsewhere, add a Procfile with \`web: <command>\`.`,
    };
  if (first === undefined) return {};
  const named = found.slice(0, 3).map(({ path }) => path);
  return {
    summary: `No file at the root of the repository says what to run; there is ${named.join(", ")}.`,
    hint: `Build that folder: \`berth projects settings --root ${first.folder}\`, then push again. Or add a Procfile at the root.`,
  };
}
