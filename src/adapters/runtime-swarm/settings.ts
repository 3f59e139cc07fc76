import type { DockerParts } from "../../containers/start-instance.ts";
import type { ImageRegistry } from "./image-registry.ts";

export interface SwarmOptions {
  /** Where machines get images from. */
  readonly registry: ImageRegistry;
  /** Addresses of edges outside of the swarm, which reach the ports of replicas as machines of the swarm do. */
  readonly edgeAddresses?: readonly string[];
}

/** What all parts of the runtime share: those of the engine of this machine, which is a manager of the swarm. */
export interface SwarmContext extends DockerParts {
  readonly registry: ImageRegistry;
  readonly edgeAddresses: readonly string[];
}
