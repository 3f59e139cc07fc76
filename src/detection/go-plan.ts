import { posix } from "node:path";
import { askedVersions, versionNotes } from "./asked-versions.ts";
import { BuildRefused } from "./failures.ts";
import type { BuildPlan, Step } from "./plan.ts";
import { fileOf, wordsOf, type Procfile } from "./procfile.ts";
import { hasSiteFile } from "./python-site.ts";
import type { SourceTree } from "./source-tree.ts";

/** Returns the plan to build a Go program. Throws BuildRefused if there is no module, no main package, or none for a Procfile command. */
export function goPlan(tree: SourceTree, version: string, procfile: Procfile): BuildPlan {
  if (!tree.has("go.mod")) {
    throw new BuildRefused("build_script_failed", {
      stage: "detect",
      summary: "main.go is there, but no go.mod.",
      hint: "Run `go mod init <name>` and `go mod tidy`, commit go.mod and go.sum, and push again.",
    });
  }
  const programs = programsOf(tree, procfile);
  return {
    kind: "go",
    name: "Go app",
    notes: [`Go ${version}`, ...versionNotes(askedVersions(tree, "go"), "Go", version)],
    tools: [{ tool: "go", inRelease: false }],
    install: null,
    build: programs.map(goBuild),
    makes: programs.map(({ file }) => file),
    prune: [],
    env: {},
    start: () => {
      if (!programs.some(({ file }) => file === defaultProgram)) throw new BuildRefused("no_start_command");
      return { how: "command", command: `./${defaultProgram}`, because: "the program that was built" };
    },
  };
}

/** Returns whether this is a Go application: a module, or a main.go at the root. */
export function isGo(tree: SourceTree): boolean {
  if (!tree.has("go.mod")) return tree.has("main.go");
  // A Hugo site may have a go.mod that names its themes.
  return !hasSiteFile(tree) || tree.paths.some((path) => path.endsWith(".go"));
}

function goBuild({ file, from }: Program): Step {
  return {
    title: `Building ${file}: go build ${from}`,
    stage: "build",
    // `-v` prints each package as it is compiled: the first build also compiles the standard library, which takes minutes on a busy machine.
    args: ["go", "build", "-v", "-trimpath", "-buildvcs=false", "-o", file, from],
    env: { GOTOOLCHAIN: "local", GOFLAGS: "-modcacherw" },
    tool: "go",
    otherwise: "build_script_failed",
  };
}

interface Program {
  readonly file: string;
  /** The main package, as an argument of `go build`. */
  readonly from: string;
}

const defaultProgram = "bin/web";

/** Returns one program for each Procfile command that starts one, under the name the command uses, and one for `web` if a main package is left. */
function programsOf(tree: SourceTree, { web, release, others }: Procfile): Program[] {
  const mains = mainPackages(tree);
  const commands = [web, release, ...Object.values(others)];
  const found = commands.flatMap((command) => (command === null ? [] : programFor(command, mains, tree)));
  const isOther = ({ command }: { command: string }) => command !== web && command !== release;
  const hasWeb = found.some(({ command }) => command === web);
  const isUsedUp = found.some(isOther) && mains.every(({ from }) => found.some((program) => program.from === from));
  const programs = hasWeb || isUsedUp ? found : [{ file: defaultProgram, from: preferredMain(mains, tree) }, ...found];
  return [...new Map(programs.map(({ file, from }) => [file, { file, from }])).values()];
}

// A missing script must be refused: compiled under its name, the program would run in its place.
const script = /\.(?:sh|bash|py|rb|pl|php|[cm]?[jt]s)$/;

function programFor(command: string, mains: readonly Main[], tree: SourceTree): (Program & { command: string })[] {
  const file = fileOf(command);
  const [word = ""] = wordsOf(command);
  const named = mains.find(({ name }) => name === posix.basename(file ?? word));
  if (file === null) return named === undefined ? [] : [{ command, file: `bin/${word}`, from: named.from }];
  if (!word.includes("/") || tree.has(file) || script.test(file)) return [];
  return [{ command, file, from: named?.from ?? preferredMain(mains, tree) }];
}

interface Main {
  readonly from: string;
  /** The program name that `go install` would use. */
  readonly name: string;
}

function mainPackages(tree: SourceTree): Main[] {
  const folders = tree.paths
    .filter(
      (path) => path.endsWith(".go") && !path.endsWith("_test.go") && /^package main\b/m.test(tree.text(path) ?? ""),
    )
    .map((path) => posix.dirname(path));
  return [...new Set(folders)].map((folder) => ({
    from: folder === "." ? "." : `./${folder}`,
    name: folder === "." ? moduleName(tree) : posix.basename(folder),
  }));
}

function moduleName(tree: SourceTree): string {
  const path = /^module[ \t]+(\S+)/m.exec(tree.text("go.mod") ?? "")?.[1] ?? "";
  return posix.basename(path.replace(/\/v\d+$/, ""));
}

function preferredMain(mains: readonly Main[], tree: SourceTree): string {
  const [first] = mains;
  const root = mains.find(({ from }) => from === ".");
  const usual = ["./cmd/web", "./cmd/server", "./cmd/api", `./cmd/${moduleName(tree)}`];
  const known = usual.find((from) => mains.some((main) => main.from === from));
  const chosen = root?.from ?? known ?? (mains.length === 1 ? first?.from : undefined);
  if (chosen !== undefined) return chosen;
  const found =
    first === undefined
      ? "no main package was found"
      : `several main packages were found: ${mains.map(({ from }) => from).join(", ")}`;
  throw new BuildRefused("no_start_command", {
    summary: `This is a Go module, but ${found}.`,
    hint: "Put the main package at the root or into cmd/web, or name its program in a Procfile: `web: ./bin/<name of its folder>`.",
  });
}
