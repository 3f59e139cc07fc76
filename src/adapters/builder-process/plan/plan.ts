import type { Stage } from "../../../ports/failure.ts";
import type { BuilderFailureCode } from "../failure-codes.ts";

/** What kind of application it is; also the image's `kind`. */
export type Kind = "node" | "python" | "go" | "static" | "procfile";

/** One command of a build as data: it runs in the sandbox, in the application's folder. */
export interface Step {
  /** Printed as `-----> title`. */
  readonly title: string;
  readonly stage: Extract<Stage, "install" | "build">;
  readonly args: readonly [string, ...string[]];
  /** Added to the build's environment for this step. Holds no secret. */
  readonly env: Readonly<Record<string, string>>;
  /** How its failure is told apart from others, see `classify`. */
  readonly tool: Tool;
  /** What an unrecognised failure of this step is called. */
  readonly otherwise: BuilderFailureCode;
  /** Its output is only shown when it fails. */
  readonly quiet?: boolean;
  /** What is tried when its failure is one that need not be the end. */
  readonly instead?: Instead;
}

export interface Instead {
  /** Whether this output of the failed step calls for it. */
  readonly fits: (output: string) => boolean;
  /** Said before it is tried. */
  readonly remark: string;
  readonly step: Step;
}

export type Tool = "npm" | "pnpm" | "yarn" | "pip" | "go" | "script";

/** Installing, with what makes its result reusable. */
export interface Install {
  /** The folder that the steps fill, such as `node_modules`. */
  readonly folder: string;
  /** Equal keys give equal folders, so a kept one may take the steps' place. Null: the result depends on more than can be named. */
  readonly key: string | null;
  readonly steps: readonly Step[];
  /** What installing would also have run in the source; it is run when a kept folder took the steps' place. */
  readonly again: readonly Step[];
}

/** Everything a language has decided before anything runs. */
export interface Plan {
  readonly kind: Kind;
  /** `Node.js app`, printed as `-----> Node.js app detected`. */
  readonly name: string;
  readonly notes: readonly string[];
  readonly install: Install | null;
  readonly build: readonly Step[];
  /** Takes what only the build needed out of the installed folder. Must only remove files. */
  readonly prune: readonly Step[];
}

/** How the release is run, decided when the build's output is there. */
export type Start =
  | { readonly how: "command"; readonly command: string; readonly because: string }
  | { readonly how: "static"; readonly folder: string; readonly fallback: "index" | "none"; readonly because: string };
