import type { Readable } from "node:stream";
import type { Failure } from "./failure.ts";
import type { ServerAddress } from "../kit/server-address.ts";

/**
 * Makes an immutable, content-addressed image out of a source tree. The image is run by the runtime of the same family.
 * Nothing of a failed build stays but its caches. Building the same source twice may give the same image.
 */
export interface Builder {
  /** Builds; a fault of the source is an outcome, a fault of the machine is thrown. Ends soon after `signal` aborts and after `limits.timeoutMs`. */
  build(request: BuildRequest): Promise<BuildOutcome>;
  /** What a build of the source would do, decided as `build` decides it; runs nothing of the source and keeps nothing. Ends soon after `signal` aborts. */
  plan(request: PlanRequest): Promise<PlanOutcome>;
  /** Images that exist here, for pruning. */
  images(projectId: string): Promise<readonly string[]>;
  /** What a project's images and caches take on disk, in bytes. Reads all of them, so ask rarely. Null when that took too long. */
  diskBytes(projectId: string): Promise<number | null>;
  /** Whether the disk that keeps images has too little space for a build. */
  isShortOfSpace(): Promise<boolean>;
  /** Throws away what builds of the project kept for the next one. */
  clearCaches(projectId: string): Promise<void>;
}

export interface BuildRequest {
  readonly build_id: string;
  readonly org_id: string;
  readonly project_id: string;
  readonly project_number: number;
  /** Where a machine has several families: the name of the runtime that the image is for. The first family's when it is absent. */
  readonly runtime?: string;
  /** Commands that count more than what the source's own files say. */
  readonly commands?: BuildCommands;
  /** The source tree as a tar stream (`git archive`), opened when the build is ready for it. */
  readonly source: () => Readable;
  /** The application's variables, as install and build commands get them. May hold secrets. */
  readonly env: Readonly<Record<string, string>>;
  /** Values that no line of the log and no failure may show. */
  readonly secrets: readonly string[];
  /** Registries that private images may come from, for this build alone. */
  readonly registries: readonly RegistryLogin[];
  /** Servers that the commands reach where the runtime of the same family says (`endpointFor`), such as the project's database. */
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

/** What a build of a source does, as far as that shows before anything of it runs. */
export interface PlannedBuild {
  readonly kind: string;
  /** Such as `Node.js app`. */
  readonly name: string;
  readonly uses_dockerfile: boolean;
  /** What the build runs with, such as `Node.js 24.4.0` or `pnpm 10`. */
  readonly tools: readonly string[];
  readonly notes: readonly string[];
  readonly steps: readonly PlannedStep[];
  /** Null: nothing serves requests. */
  readonly web: PlannedStart | null;
  readonly processes: Readonly<Record<string, string>>;
  readonly release_command: string | null;
}

export interface PlannedStart {
  /** Null: only what the build makes decides it. */
  readonly command: string | null;
  readonly because: string;
}

export interface PlannedStep {
  readonly stage: "install" | "build" | "prune";
  readonly command: string;
}

/** A user of a registry of images. The host is written as image names begin with it. */
export interface RegistryLogin {
  readonly host: string;
  readonly username: string;
  readonly password: string;
}

export interface BuildCommands {
  readonly build?: string | undefined;
  readonly start?: string | undefined;
  readonly release?: string | undefined;
  readonly processes?: Readonly<Record<string, string>> | undefined;
}

export interface BuildLimits {
  readonly memoryBytes: number;
  readonly processes: number;
  readonly timeoutMs: number;
  /** A build that prints nothing for this long is ended. */
  readonly silenceMs: number;
}

export type BuildOutcome =
  | { readonly outcome: "built"; readonly image: Image }
  | { readonly outcome: "failed"; readonly failure: Failure }
  | { readonly outcome: "cancelled" };

export interface Image {
  /** Names the image for the runtime of the same family; equal content gives equal names. Opaque to all others. */
  readonly image_ref: string;
  /** What was found, such as `node`, `python`, `go`, `static`, `procfile`. */
  readonly kind: string;
  /** The command of the web process; for static files it starts the platform's own server, which is part of the image. Null: nothing serves requests. */
  readonly web_command: string | null;
  /** The commands of all other process types, such as `worker`. Images that an earlier version built lack it. */
  readonly processes?: Readonly<Record<string, string>>;
  /** Runs before traffic moves, in the new image; null when there is none. */
  readonly release_command: string | null;
  readonly size_bytes: number;
  /** The name of the runtime that it is for. Images that an earlier version built lack it. */
  readonly runtime?: string;
  /** The port that the image itself says it listens on. */
  readonly port?: number;
}
