import type { DockerParts } from "../../containers/start-instance.ts";
import type { ImageRegistry } from "./image-registry.ts";

export interface SwarmOptions {
  /** The registry from which machines pull images. */
  readonly registry: ImageRegistry;
  /** Addresses of edges outside the swarm; they may reach replicas' ports, as the swarm's machines may. */
  readonly edgeAddresses?: readonly string[];
}

/** Shared by all parts of the runtime; extends the parts of this machine's engine, which is a manager of the swarm. */
export interface SwarmContext extends DockerParts {
  readonly registry: ImageRegistry;
  readonly edgeAddresses: readonly string[];
}
