import type { BuildEngineOptions } from "./build-engine.ts";
import type { ParentImages } from "./generate-dockerfile.ts";

export interface DockerBuilderOptions {
  /** The socket of the engine that runs the images. */
  readonly runSocket: string;
  /** Builds that are under way. */
  readonly buildsDir: string;
  /** The engine that builds, see `startBuildEngine`. */
  readonly engine: BuildEngineOptions;
  readonly parents: ParentImages;
  /** Names of images of the run engine that Dockerfiles may start from besides those; all others come from registries. */
  readonly sharedImages: readonly string[];
  /** Registries in private networks or on this machine that builds may reach, as `host[:port]`. */
  readonly privateRegistries: readonly string[];
  /** Settings of package managers for generated steps. Never a secret. */
  readonly packageEnv: Readonly<Record<string, string>>;
  /** Certificates (PEM) that generated steps trust; null: those of the parent image. */
  readonly certificates: Buffer | null;
  /** With less free space on the disk of the engine that runs images there are no builds. */
  readonly diskFloorBytes: number;
  readonly maxSourceBytes: number;
  readonly maxImageBytes: number;
}
