import type { Readable } from "node:stream";
import type { Failure } from "./failure.ts";
import type { ProjectImage } from "./runtime.ts";
import type { ServerAddress } from "../kit/server-address.ts";

/** Builds an immutable, content-addressed image from a source tree. A failed build leaves nothing but its caches. */
export interface Builder {
  /** Runs a build. A fault of the source is an outcome; one of the machine is thrown. Returns soon after an abort or `limits.timeoutMs`. */
  build(request: BuildRequest): Promise<BuildOutcome>;
  /** Returns what `build` would do with the source; executes and stores nothing. Returns soon after `signal` aborts. */
  plan(request: PlanRequest): Promise<PlanOutcome>;
  /** Lists the project's images on this machine; those that are runnable have everything that they need beside themselves. */
  images(projectId: string, only?: "runnable"): Promise<readonly string[]>;
  /** Gives another project of the organization an image; returns its reference there, null if this machine lacks it. Idempotent. */
  adopt(image: ProjectImage, to: Pick<BuildRequest, "project_id" | "project_number">): Promise<string | null>;
  /** Returns the disk usage of a project's images and caches in bytes, null when that took too long. Reads every file: call it rarely. */
  diskBytes(projectId: string): Promise<number | null>;
  isShortOfSpace(): Promise<boolean>;
  /** Measures how much of the disk a running build uses, in bytes; null if it doesn't run or measuring took too long. */
  takenBytes(buildId: string): Promise<number | null>;
  /** Logs in to a registry, from where builds do. `unknown`: it did not answer, or not as registries do. Absent where builds pull no images. */
  readonly tryLogin?: ((login: RegistryLogin) => Promise<"accepted" | "refused" | "unknown">) | undefined;
  clearCaches(projectId: string): Promise<void>;
}

export interface BuildRequest {
  readonly build_id: string;
  readonly org_id: string;
  readonly project_id: string;
  readonly project_number: number;
  /** On a machine with several families: the name of the runtime that will run the image. Defaults to that of the first family. */
  readonly runtime?: string;
  /** Settings that override what the source's other files say. */
  readonly commands?: BuildCommands;
  /** Opens the source tree as a tar stream (`git archive`) once the build is ready to read it. */
  readonly source: () => Readable;
  /** The application's variables, set for install and build commands. May hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Values to redact from log lines and failures. */
  readonly secrets: readonly string[];
  /** Logins for private images, used by this build only. */
  readonly registries: readonly RegistryLogin[];
  /** Servers that the commands may connect to, such as the project's database, by `endpointFor` of the family's runtime. */
  readonly reach: readonly ServerAddress[];
  readonly limits: BuildLimits;
  readonly signal: AbortSignal;
  /** Receives the log, line by line without line feeds: `-----> step`, 7 spaces of detail, ` !     error`. A failure's summary and hint are its last lines. */
  readonly onLine: (line: string) => void;
}

export type PlanRequest = Pick<BuildRequest, "org_id" | "project_id" | "runtime" | "commands" | "source" | "signal">;

export type PlanOutcome =
  | { readonly outcome: "planned"; readonly plan: PlannedBuild }
  | { readonly outcome: "refused"; readonly failure: Failure }
  | { readonly outcome: "cancelled" };

/** What a build of a source would do, as far as it can be known without running anything. */
export interface PlannedBuild {
  readonly kind: string;
  /** Such as `Node.js app`. */
  readonly name: string;
  readonly uses_dockerfile: boolean;
  /** The tools that the build uses, such as `Node.js 24.4.0` or `pnpm 10`. */
  readonly tools: readonly string[];
  readonly notes: readonly string[];
  readonly steps: readonly PlannedStep[];
  /** Null: nothing serves requests. */
  readonly web: PlannedStart | null;
  readonly processes: Readonly<Record<string, string>>;
  readonly release_command: string | null;
}

export interface PlannedStart {
  /** Null when only the build's output decides it. */
  readonly command: string | null;
  readonly because: string;
}

export interface PlannedStep {
  readonly stage: "install" | "build" | "prune";
  readonly command: string;
}

/** Credentials for an image registry. The host is spelled as at the start of image names. */
export interface RegistryLogin {
  readonly host: string;
  readonly username: string;
  readonly password: string;
}

/** The settings of the source's berth.json and of the project that concern its image. */
export interface BuildCommands {
  readonly build?: string | undefined;
  readonly start?: string | undefined;
  readonly release?: string | undefined;
  readonly processes?: Readonly<Record<string, string>> | undefined;
  /** Where the application expects its persistent folder. */
  readonly storage?: string | undefined;
  /** The application's folder in the source, which is the JavaScript workspace around it. Absent: the source is the application. */
  readonly member?: string | undefined;
  /** Path of the Dockerfile, and the stage of it to build, for builders that read Dockerfiles. */
  readonly dockerfile?: string | undefined;
  readonly target?: string | undefined;
  /** The port that the application listens on, whatever its image says. */
  readonly port?: number | undefined;
  /** Deploys pointers of Git LFS as they are; without it, they refuse the build. */
  readonly lfs?: "ignore" | undefined;
}

export interface BuildLimits {
  readonly memoryBytes: number;
  readonly processes: number;
  readonly timeoutMs: number;
  /** A build that prints nothing for this long is aborted. */
  readonly silenceMs: number;
}

export type BuildOutcome =
  | { readonly outcome: "built"; readonly image: Image }
  | { readonly outcome: "failed"; readonly failure: Failure }
  | { readonly outcome: "cancelled" };

export interface Image {
  /** Identifies the image to the runtime of the same family, and is opaque to all other code. Equal content yields equal references. */
  readonly image_ref: string;
  /** The detected kind of source, such as `node`, `python`, `go`, `static`, `procfile`. */
  readonly kind: string;
  /** The command of the web process; for static files of the platform's server in the image. Null when the image serves no requests. */
  readonly web_command: string | null;
  /** The commands of all other process types, such as `worker`. */
  readonly processes: Readonly<Record<string, string>>;
  /** Runs in the new image before traffic moves to it. Null when there is none. */
  readonly release_command: string | null;
  readonly size_bytes: number;
  /** The name of the runtime that the image is built for. Builders leave it out; `joinRuntimes` adds it. */
  readonly runtime?: string;
  /** The port that the image declares (`EXPOSE`). */
  readonly port?: number;
  /** The time that the image's HEALTHCHECK allows for a start (`--start-period`). */
  readonly start_seconds?: number;
}
