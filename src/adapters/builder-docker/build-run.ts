import type { BuildLog } from "../../building/build-log.ts";
import type { TimeLimit } from "../../building/time-limit.ts";
import type { DockerApi } from "../../kit/docker-api.ts";
import type { BuildRequest, RegistryLogin } from "../../ports/builder.ts";
import type { DockerBuilderOptions } from "./options.ts";
import type { BuildEngine } from "./build-engine.ts";

/** One build on its way: what its stages share. */
export interface BuildRun {
  readonly options: DockerBuilderOptions;
  readonly runEngine: DockerApi;
  /** The engine that builds, started when it is first asked for, with the shared images that this Dockerfile may start from. */
  readonly engine: (dockerfile: string) => Promise<BuildEngine>;
  /** What the build may log in with. */
  readonly logins: readonly RegistryLogin[];
  readonly scopesDir: string;
  readonly request: BuildRequest;
  readonly log: BuildLog;
  readonly time: TimeLimit;
  /** The build's own, `app/` with the source in it. */
  readonly folder: string;
}

/** The name of the Dockerfile in a build's context. */
export const dockerfileName = "Dockerfile";
