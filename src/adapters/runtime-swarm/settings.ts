import type { DockerParts } from "../../containers/start-instance.ts";
import type { DockerApi } from "../../kit/docker-api.ts";
import type { ImageRegistry } from "./image-registry.ts";
import type { Recall } from "./recall.ts";

export interface SwarmOptions {
  readonly registry: ImageRegistry;
  /** Addresses of edges outside the swarm; they may reach replicas' ports, as the swarm's machines may. */
  readonly edgeAddresses?: readonly string[];
  /** The engines of other managers of the swarm, for when this machine's engine or its leader does not answer. */
  readonly otherManagers?: readonly DockerApi[];
}

/** Shared by all parts of the runtime; extends the parts of this machine's engine, which is a manager of the swarm. */
export interface SwarmContext extends DockerParts {
  /** For everything that belongs to the swarm. What belongs to this machine, such as images, is in `api`. */
  readonly managers: DockerApi;
  /** The engines of all managers, this machine's first. Each knows its own machine's containers. */
  readonly engines: readonly DockerApi[];
  readonly registry: ImageRegistry;
  readonly edgeAddresses: readonly string[];
  readonly recall: Recall;
}
