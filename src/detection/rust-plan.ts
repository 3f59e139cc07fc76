import { posix } from "node:path";
import semver from "semver";
import { askedVersions, versionNotes } from "./asked-versions.ts";
import { BuildRefused } from "./failures.ts";
import type { BuildPlan, Step } from "./plan.ts";
import { fileOf, wordsOf, type Procfile } from "./procfile.ts";
import { asTable, parseToml } from "./parse-toml.ts";
import type { SourceTree } from "./source-tree.ts";
import { createGlob, type Glob } from "../kit/glob.ts";

/** Returns the plan to build a Rust program. Throws BuildRefused if the machine's Rust is too old, or if the source has no program. */
export function rustPlan(tree: SourceTree, version: string, procfile: Procfile): BuildPlan {
  const crates = readCrates(tree);
  checkVersion(crates, version);
  const { programs, web } = choosePrograms(tree, crates, procfile);
  return {
    kind: "rust",
    name: "Rust app",
    notes: [`Rust ${version}`, ...notesOn(tree), ...versionNotes(askedVersions(tree, "rust"), "Rust", version)],
    tools: [{ tool: "rust", inRelease: false }],
    install: null,
    build: buildSteps(tree, programs),
    makes: programs.map(({ file }) => file),
    prune: [],
    env: {},
    start: () => {
      if (web === null) throw new BuildRefused("no_start_command");
      return { how: "command", command: `${settingsOf(crates)}./${web.file}`, because: "the program that was built" };
    },
  };
}

/** Returns whether this is a Rust application, with a program if another language's manifest is there: it may be an extension for that. */
export function isRust(tree: SourceTree): boolean {
  if (!tree.has("Cargo.toml")) return false;
  const isExtension = ["package.json", "pyproject.toml", "setup.py"].some((file) => tree.has(file));
  return !isExtension || tree.paths.some((path) => /(?:^|\/)src\/(?:main|bin\/[^/]+(?:\/main)?)\.rs$/.test(path));
}

function notesOn(tree: SourceTree): string[] {
  const channel = toolchainChannel(tree);
  return [
    ...(channel === null ? [] : [`rust-toolchain names ${channel}; the machine's Rust is used`]),
    ...(tree.has("Cargo.lock") ? [] : ["No Cargo.lock: versions may change from build to build. Commit one."]),
  ];
}

function toolchainChannel(tree: SourceTree): string | null {
  const toml = tree.text("rust-toolchain.toml");
  const plain = tree.text("rust-toolchain");
  const text = toml ?? plain ?? "";
  if (toml === null && !text.includes("[")) return text.trim().slice(0, 100) || null;
  const channel = asTable(parseToml(text, "rust-toolchain.toml", "manifest_invalid")["toolchain"])["channel"];
  return typeof channel === "string" ? channel : null;
}

/** Throws BuildRefused if a crate's `rust-version`, the lowest that works, is above the machine's. */
function checkVersion(crates: readonly Crate[], version: string): void {
  for (const { rustVersion, manifest } of crates) {
    const wish = semver.coerce(rustVersion ?? "");
    const own = semver.coerce(version);
    if (wish === null || own === null || semver.gte(own, wish)) continue;
    const summary = `${manifest} requires Rust ${rustVersion}; this machine has ${version}.`;
    throw new BuildRefused("rust_version_unavailable", { stage: "detect", summary });
  }
}

function buildSteps(tree: SourceTree, programs: readonly Program[]): Step[] {
  const locked = tree.has("Cargo.lock") ? ["--locked"] : [];
  const packages = [...new Set(programs.map(({ crate }) => crate.name))].flatMap((name) => ["--package", name]);
  const names = [...new Set(programs.map(({ name }) => name))].flatMap((name) => ["--bin", name]);
  const shared = { env: { CARGO_INCREMENTAL: "0" }, tool: "cargo" } as const;
  const fetch = ["cargo", "fetch", ...locked] as const;
  const build = ["cargo", "build", "--release", ...locked, ...packages, ...names] as const;
  return [
    {
      ...{ ...shared, title: `Fetching dependencies: ${fetch.join(" ")}`, stage: "install", args: [...fetch] },
      otherwise: "install_failed",
    },
    {
      // Cargo compares modification times. A commit's files carry the commit's time, which may be older than the last build of another commit.
      ...{ ...shared, title: "Marking the source as new", stage: "build", quiet: true },
      args: ["find", ".", "-type", "f", "-exec", "touch", "--no-create", "{}", "+"],
      otherwise: "build_script_failed",
    },
    {
      ...{ ...shared, title: `Building: ${build.join(" ")}`, stage: "build", args: [...build] },
      otherwise: "build_script_failed",
    },
    ...programs.map(({ file, name }): Step => {
      const args = ["install", "-D", `${cargoTarget}/release/${name}`, file] as const;
      const what = { title: `Copying ${name} to ${file}`, stage: "build", quiet: true } as const;
      return { ...shared, ...what, args: [...args], otherwise: "build_output_missing" };
    }),
  ];
}

/** Where compiled packages are kept between builds, outside the release. Cargo itself decides which are still valid. */
export const cargoTarget = "/cache/cargo-target";

/** Returns environment settings: Rocket reads its address and port from its own variables. */
function settingsOf(crates: readonly Crate[]): string {
  return crates.some(({ uses }) => uses("rocket")) ? "ROCKET_ADDRESS=0.0.0.0 ROCKET_PORT=$PORT " : "";
}

interface Program {
  readonly crate: Crate;
  readonly name: string;
  /** Path of the built program in the application's folder. */
  readonly file: string;
}

/** Chooses one program for each Procfile command that starts one, and one for `web` if the Procfile has none. */
function choosePrograms(tree: SourceTree, crates: readonly Crate[], { web, release, others }: Procfile) {
  const all = crates.flatMap((crate) => crate.programs.map((name) => ({ crate, name, file: posix.join("bin", name) })));
  const named = (command: string) => programFor(command, all, tree);
  const commands = [web, release, ...Object.values(others)];
  const found = commands.flatMap((command) => (command === null ? [] : named(command)));
  const takenByOthers = Object.values(others).flatMap(named);
  const isUsedUp = all.length > 0 && all.every(({ name }) => takenByOthers.some((each) => each.name === name));
  const serving = web === null && !isUsedUp ? preferredOf(all, crates) : null;
  const fallback = found.length === 0 && serving === null ? [preferredOf(all, crates)] : [];
  const programs = [...(serving === null ? [] : [serving]), ...found, ...fallback];
  return {
    programs: [...new Map(programs.map((program) => [program.file, program])).values()],
    /** The program that serves if the Procfile has no `web`. */
    web: serving,
  };
}

function programFor(command: string, all: readonly Program[], tree: SourceTree): Program[] {
  const file = fileOf(command);
  const [word = ""] = wordsOf(command);
  const program = all.find(({ name }) => name === posix.basename(file ?? word));
  if (program === undefined || (file !== null && tree.has(file))) return [];
  return [file === null ? program : { ...program, file }];
}

const usualNames = ["web", "server", "api"];

function preferredOf(all: readonly Program[], crates: readonly Crate[]): Program {
  const wished = crates.map(({ defaultRun }) => defaultRun).find((name) => name !== null);
  const root = crates.find(({ folder }) => folder === ".")?.name;
  const candidates = [wished, root, ...usualNames];
  const chosen = candidates.map((name) => all.find((each) => each.name === name)).find((each) => each !== undefined);
  const [first] = all;
  if (chosen !== undefined) return chosen;
  if (first !== undefined && all.length === 1) return first;
  const found =
    first === undefined
      ? "builds no program: there is no src/main.rs"
      : `builds several programs: ${all.map(({ name }) => name).join(", ")}`;
  throw new BuildRefused("no_start_command", {
    summary: `Cargo.toml ${found}.`,
    hint: "Name the one that serves in `default-run` of Cargo.toml, or in a Procfile: `web: ./bin/<its name>`.",
  });
}

/** A package of a Rust source that may build programs. */
interface Crate {
  readonly name: string;
  /** The folder of its Cargo.toml; `.` for the root. */
  readonly folder: string;
  readonly manifest: string;
  /** The names of the programs that it builds. */
  readonly programs: readonly string[];
  readonly defaultRun: string | null;
  readonly rustVersion: string | null;
  /** Returns whether its manifest declares this dependency. */
  uses(dependency: string): boolean;
}

function readCrates(tree: SourceTree): readonly Crate[] {
  const root = readManifest(tree, "Cargo.toml");
  const workspace = asTable(root["workspace"]);
  const members = textsIn(workspace["members"]).map(memberPattern);
  const work = { steps: 0 };
  const isMember = (path: string) =>
    members.some((pattern) => work.steps <= mostSteps && pattern.matches(posix.dirname(path), work));
  const manifests = tree.paths.filter((path) => path.endsWith("/Cargo.toml") && isMember(path));
  const shared = asTable(workspace["package"])["rust-version"];
  return ["Cargo.toml", ...manifests].flatMap((path) => crateOf(tree, path, shared) ?? []);
}

// Beyond this, the rest of a source's manifests counts as no members.
const mostSteps = 5_000_000;

function memberPattern(member: string): Glob {
  return createGlob(posix.normalize(member).replace(/\/$/, "").slice(0, 200), "plain");
}

function readManifest(tree: SourceTree, path: string): Record<string, unknown> {
  return parseToml(tree.text(path) ?? "", path, "manifest_invalid");
}

function crateOf(tree: SourceTree, manifest: string, sharedVersion: unknown): Crate | null {
  const content = readManifest(tree, manifest);
  const settings = asTable(content["package"]);
  const { name, "default-run": defaultRun, "rust-version": version } = settings;
  if (typeof name !== "string") return null;
  const folder = posix.dirname(manifest);
  const rustVersion = typeof version === "string" ? version : version === undefined ? null : sharedVersion;
  return {
    ...{ name, folder, manifest, programs: programsIn(tree, content, { name, folder }) },
    defaultRun: typeof defaultRun === "string" ? defaultRun : null,
    rustVersion: typeof rustVersion === "string" ? rustVersion : null,
    uses: (dependency) => asTable(content["dependencies"])[dependency] !== undefined,
  };
}

interface Place {
  readonly name: string;
  readonly folder: string;
}

/** Returns the programs that the manifest names and those that Cargo finds by their path. */
function programsIn(tree: SourceTree, content: Record<string, unknown>, { name, folder }: Place): string[] {
  const bins = Array.isArray(content["bin"]) ? content["bin"].map(asTable) : [];
  const declared = bins.flatMap((bin) => (typeof bin["name"] === "string" ? [bin["name"]] : []));
  if (asTable(content["package"])["autobins"] === false) return declared;
  const claimed = new Set(bins.map((bin) => posix.join(folder, typeof bin["path"] === "string" ? bin["path"] : "")));
  const main = posix.join(folder, "src/main.rs");
  const isOwnMain = tree.has(main) && !claimed.has(main);
  const prefix = posix.join(folder, "src/bin/");
  const others = tree.paths.flatMap((path) => {
    if (!path.startsWith(prefix) || claimed.has(path)) return [];
    const [, found] = /^([^/]+?)(?:\.rs|\/main\.rs)$/.exec(path.slice(prefix.length)) ?? [];
    return found === undefined ? [] : [found];
  });
  return [...new Set([...declared, ...(isOwnMain ? [name] : []), ...others])];
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
