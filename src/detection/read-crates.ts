import { posix } from "node:path";
import { createGlob, type Glob } from "../kit/glob.ts";
import { asTable, parseToml } from "./parse-toml.ts";
import type { SourceTree } from "./source-tree.ts";

/** A package of a Rust source that may build programs. */
export interface Crate {
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

export function readCrates(tree: SourceTree): readonly Crate[] {
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
