import type { BuildLog } from "../../building/build-log.ts";
import type { TimeLimit } from "../../building/time-limit.ts";
import type { DockerApi } from "../../kit/docker-api.ts";
import type { BuildRequest, RegistryLogin } from "../../ports/builder.ts";
import type { DockerBuilderOptions } from "./options.ts";
import type { TakenDisk } from "./build-disks.ts";
import type { BuildEngine } from "./build-engine.ts";

/** A build in progress: what its stages share. */
export interface BuildRun {
  readonly options: DockerBuilderOptions;
  readonly runEngine: DockerApi;
  /** Returns the build engine, started on first use, with the shared images that this Dockerfile may start from. */
  readonly engine: (dockerfile: string) => Promise<BuildEngine>;
  /** Registry logins that the build may use. */
  readonly logins: readonly RegistryLogin[];
  readonly scopesDir: string;
  readonly request: BuildRequest;
  readonly log: BuildLog;
  readonly time: TimeLimit;
  /** The build's own folder; `app/` in it holds the source. */
  readonly folder: string;
  /** How much of the engine's disk its steps use; each step adds its own use. */
  readonly taken: Set<TakenDisk>;
}

export const dockerfileName = "Dockerfile";
