import type { BuildEngineOptions } from "./build-engine.ts";
import type { ParentImages } from "./generate-dockerfile.ts";

export interface DockerBuilderOptions {
  /** Socket of the engine that runs the images. */
  readonly runSocket: string;
  readonly buildsDir: string;
  readonly engine: BuildEngineOptions;
  readonly parents: ParentImages;
  /** Names of the run engine's images that Dockerfiles may start from in addition to `parents`; all others come from registries. */
  readonly sharedImages: readonly string[];
  /** Registries in private networks or on this machine that builds may reach, as `host[:port]`. */
  readonly privateRegistries: readonly string[];
  /** Package manager settings for generated steps. Must not contain secrets. */
  readonly packageEnv: Readonly<Record<string, string>>;
  /** Certificates (PEM) that generated steps trust; null for those of the base image. */
  readonly certificates: Buffer | null;
  /** No builds start when the run engine's disk has less free space than this. */
  readonly diskFloorBytes: number;
  /** How much disk a build may use while it runs. */
  readonly buildDiskBytes: number;
  readonly maxSourceBytes: number;
  readonly maxImageBytes: number;
}
