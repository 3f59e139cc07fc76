import { hash } from "node:crypto";
import type { Stage } from "../ports/failure.ts";
import type { BuilderFailureCode } from "./failures.ts";
import type { Jdk } from "./java-version.ts";
import type { NodeWish } from "./node-version.ts";
import type { PackageManager } from "./package-manager.ts";

/** The kind of application; also the image's `kind`. */
export type Kind = "node" | "python" | "go" | "rust" | "java" | "deno" | "ruby" | "php" | "static" | "procfile";

/** Everything about a build that is decided before anything runs. */
export interface BuildPlan {
  readonly kind: Kind;
  /** Such as `Node.js app`, printed as `-----> Node.js app detected`. */
  readonly name: string;
  readonly notes: readonly string[];
  readonly tools: readonly ToolWish[];
  readonly install: Install | null;
  readonly build: readonly Step[];
  /** Files that the build creates and commands may start; absent if only the build itself knows them. */
  readonly makes?: readonly string[];
  /** Steps that remove what only the build needed from the install folder. They must only remove files. */
  readonly prune: readonly Step[];
  /** The release's environment; the project's own variables override it. */
  readonly env: Readonly<Record<string, string>>;
  /** Decides how the release starts, once the build's output exists. Throws BuildRefused if nothing can be started. */
  readonly start: (files: BuiltFiles) => Start;
}

/** A tool that the build needs. `inRelease`: the application also needs it at run time. */
export type ToolWish =
  | { readonly tool: "node"; readonly wish: NodeWish | null; readonly inRelease: true }
  | { readonly tool: "package-manager"; readonly manager: PackageManager; readonly inRelease: true }
  | { readonly tool: "deno"; readonly wish: string; readonly inRelease: true }
  | { readonly tool: "java"; readonly jdk: Jdk; readonly inRelease: true }
  | { readonly tool: "go" | "rust" | "maven" | "gradle"; readonly inRelease: false };

/** One command of a build, as data. It runs in the sandbox, in the application's folder. */
export interface Step {
  /** Printed as `-----> title`. */
  readonly title: string;
  readonly stage: Extract<Stage, "install" | "build">;
  readonly args: readonly [string, ...string[]];
  /** Added to the build's environment for this step. Must not hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Selects the patterns by which `classify` recognizes a failure. */
  readonly tool: Tool;
  /** The code of a failure that `classify` does not recognize. */
  readonly otherwise: BuilderFailureCode;
  /** Whether its output is shown only if it fails. */
  readonly quiet?: boolean;
  /** A step to try if this one fails in a way that need not end the build. */
  readonly instead?: Instead;
}

export interface Instead {
  /** Returns whether the failed step's output calls for this step. */
  readonly fits: (output: string) => boolean;
  /** Printed before the step runs. */
  readonly note: string;
  readonly step: Step;
}

export type Tool =
  | "npm"
  | "pnpm"
  | "yarn"
  | "bun"
  | "deno"
  | "pip"
  | "go"
  | "cargo"
  | "java"
  | "bundler"
  | "composer"
  | "script";

/** The install steps, and what makes their result reusable. */
export interface Install {
  /** The folder that the steps fill, such as `node_modules`. */
  readonly folder: string;
  /** What determines the folder's content besides the tools. Null: the content depends on more than can be listed. */
  readonly inputs: readonly unknown[] | null;
  readonly steps: readonly Step[];
  /** npm's lock file, whose packages are not downloaded again if other projects' installs have fetched them. Null without one. */
  readonly npmLockFile: string | null;
  /** The application's own install scripts, which also run if a cached folder replaces the steps. */
  readonly again: readonly Step[];
  /** How to get the same folder from a manifest and `npmLockFile` alone; absent if the install depends on more. */
  readonly standalone?: StandaloneInstall;
}

/** An install that depends on nothing but the manifest and lock file, so that projects with equal ones get equal folders. */
export interface StandaloneInstall {
  /** The package.json to install from. */
  readonly manifest: string;
  /** Must not run any package's scripts. */
  readonly step: Step;
}

/** Returns the cache key of an install: a cached folder with an equal key may replace the steps. Null if it is not reusable. */
export function installKey(install: Install, toolVersions: readonly string[]): string | null {
  if (install.inputs === null) return null;
  return hash("sha256", JSON.stringify([process.arch, toolVersions, install.inputs]));
}

/** The files of a finished build that matter for starting it. */
export interface BuiltFiles {
  /** Returns whether a plain file exists there, with no link on the way. */
  has(path: string): boolean;
  /** Returns false only if nothing can be reached by this path; a link on the way counts as something. */
  mayExist(path: string): boolean;
  folders(path: string): readonly string[];
  files(path: string): readonly string[];
  /** Counts the HTML files in this folder and below, up to 2. */
  pages(path: string): number;
}

export type Start =
  | { readonly how: "command"; readonly command: string; readonly because: string }
  | { readonly how: "static"; readonly folder: string; readonly fallback: "index" | "none"; readonly because: string };
