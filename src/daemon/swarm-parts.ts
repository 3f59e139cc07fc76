import { join } from "node:path";
import { createGivenRegistry } from "../adapters/runtime-swarm/given-registry.ts";
import { createOwnRegistry } from "../adapters/runtime-swarm/own-registry.ts";
import { readMembership } from "../adapters/runtime-swarm/swarm-api.ts";
import { openDockerApi } from "../kit/docker-api.ts";
import { systemPath } from "../kit/exec.ts";
import { pathsIn, type Config } from "./config.ts";
import { findProgram } from "./setup/find-program.ts";
import { StartRefused } from "./start-refused.ts";

/** Returns what a swarm needs besides this machine's engine: an image registry and the addresses of the edges. */
export function swarmParts(config: Config) {
  return { registry: registryOf(config), edgeAddresses: config.swarmEdges };
}

function registryOf(config: Config) {
  if (config.swarmRegistry !== null) return createGivenRegistry(config.swarmRegistry, config.swarmRegistryLogin);
  const program = findProgram("docker-registry", systemPath);
  if (program === null)
    throw new StartRefused(
      "BERTH_RUNTIME=swarm needs a registry of images: install Debian's package docker-registry, or set BERTH_SWARM_REGISTRY.",
    );
  const address = async () => {
    const own = await readMembership(openDockerApi(config.dockerSocket));
    if (own.address === "") throw new Error("this machine's Docker engine is not part of a swarm");
    return own.address;
  };
  const dir = join(pathsIn(config.dataDir).containers, "registry");
  return createOwnRegistry({ dir, program, port: config.swarmRegistryPort, address });
}
