import { hash } from "node:crypto";
import type { Stage } from "../ports/failure.ts";
import type { BuilderFailureCode } from "./failures.ts";
import type { Jdk } from "./java-version.ts";
import type { NodeWish } from "./node-version.ts";
import type { PackageManager } from "./package-manager.ts";

/** What kind of application it is; also the image's `kind`. */
export type Kind = "node" | "python" | "go" | "rust" | "java" | "deno" | "ruby" | "php" | "static" | "procfile";

/** Everything that is decided about a build before anything runs. */
export interface BuildPlan {
  readonly kind: Kind;
  /** `Node.js app`, printed as `-----> Node.js app detected`. */
  readonly name: string;
  readonly notes: readonly string[];
  readonly tools: readonly ToolWish[];
  readonly install: Install | null;
  readonly build: readonly Step[];
  /** The files that the build makes and commands may start; left out: only the build itself tells. */
  readonly makes?: readonly string[];
  /** Takes what only the build needed out of the installed folder. Must only remove files. */
  readonly prune: readonly Step[];
  /** The release's environment; the project's own variables override it. */
  readonly env: Readonly<Record<string, string>>;
  /** Decides how the release starts, once the build's output is there. Refuses when nothing can be started. */
  readonly start: (files: BuiltFiles) => Start;
}

/** A tool that the build needs. `inRelease`: the application needs it too. */
export type ToolWish =
  | { readonly tool: "node"; readonly wish: NodeWish | null; readonly inRelease: true }
  | { readonly tool: "package-manager"; readonly manager: PackageManager; readonly inRelease: true }
  | { readonly tool: "deno"; readonly wish: string; readonly inRelease: true }
  | { readonly tool: "java"; readonly jdk: Jdk; readonly inRelease: true }
  | { readonly tool: "go" | "rust" | "maven" | "gradle"; readonly inRelease: false };

/** One command of a build as data: it runs in the sandbox, in the application's folder. */
export interface Step {
  /** Printed as `-----> title`. */
  readonly title: string;
  readonly stage: Extract<Stage, "install" | "build">;
  readonly args: readonly [string, ...string[]];
  /** Added to the build's environment for this step. Holds no secret. */
  readonly env: Readonly<Record<string, string>>;
  /** Selects the signs by which `classify` recognizes a failure. */
  readonly tool: Tool;
  /** The code of a failure that `classify` does not recognize. */
  readonly otherwise: BuilderFailureCode;
  /** Its output is only shown when it fails. */
  readonly quiet?: boolean;
  /** The step to try when this one fails in a way that need not end the build. */
  readonly instead?: Instead;
}

export interface Instead {
  /** Whether this output of the failed step calls for it. */
  readonly fits: (output: string) => boolean;
  /** Printed before the step runs. */
  readonly remark: string;
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

/** Installing, with what makes its result reusable. */
export interface Install {
  /** The folder that the steps fill, such as `node_modules`. */
  readonly folder: string;
  /** What decides the folder's content besides the tools. Null: the content depends on more than can be listed. */
  readonly inputs: readonly unknown[] | null;
  readonly steps: readonly Step[];
  /** npm's lock file, when other projects may have fetched the packages that it names. */
  readonly npmLockFile: string | null;
  /** The application's own install scripts, which run also when a kept folder replaces the steps. */
  readonly again: readonly Step[];
  /** How a manifest and `npmLockFile` alone give the same folder. Left out: more takes part. */
  readonly standalone?: StandaloneInstall;
}

/** An install that sees nothing of its application but what it installs, so that equal ones of several projects give equal folders. */
export interface StandaloneInstall {
  /** The package.json that it runs with. */
  readonly manifest: string;
  /** Runs no script of any package. */
  readonly step: Step;
}

/** Equal keys give equal folders, so a kept folder may replace the steps. Null when the install is not reusable. */
export function installKey(install: Install, toolVersions: readonly string[]): string | null {
  if (install.inputs === null) return null;
  return hash("sha256", JSON.stringify([process.arch, toolVersions, install.inputs]));
}

/** The files of a finished build, as far as starting needs to know. */
export interface BuiltFiles {
  /** Whether a plain file is there, with no link on the way. */
  has(path: string): boolean;
  /** False only when nothing can be reached by this path; a link on the way counts as something. */
  mayExist(path: string): boolean;
  /** The folders directly in this folder. */
  folders(path: string): readonly string[];
  /** The plain files directly in this folder. */
  files(path: string): readonly string[];
  /** How many HTML files lie in this folder and below, counted up to 2. */
  pages(path: string): number;
}

/** How the release is run. */
export type Start =
  | { readonly how: "command"; readonly command: string; readonly because: string }
  | { readonly how: "static"; readonly folder: string; readonly fallback: "index" | "none"; readonly because: string };
