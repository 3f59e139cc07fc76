import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createGivenRegistry } from "../adapters/runtime-swarm/given-registry.ts";
import { createOwnRegistry } from "../adapters/runtime-swarm/own-registry.ts";
import { createRecall } from "../adapters/runtime-swarm/recall.ts";
import { readMembership } from "../adapters/runtime-swarm/swarm-api.ts";
import { openDockerApi } from "../kit/docker-api.ts";
import { systemPath } from "../kit/exec.ts";
import { pathsIn, type Config } from "./config.ts";
import { findProgram } from "./setup/find-program.ts";
import { StartRefused } from "./start-refused.ts";

/** Returns what a swarm needs besides this machine's engine: an image registry, the addresses of the edges and other managers. */
export function swarmParts(config: Config) {
  return { registry: registryOf(config), edgeAddresses: config.swarmEdges, otherManagers: otherManagers(config) };
}

function otherManagers({ swarmManagers, swarmCertificates }: Config) {
  if (swarmManagers.length === 0) return [];
  if (swarmCertificates === null)
    throw new StartRefused("BERTH_SWARM_MANAGERS needs BERTH_SWARM_CERTIFICATES, the folder of a client certificate.");
  const read = (name: string) => {
    const path = join(swarmCertificates, name);
    if (!existsSync(path)) throw new StartRefused(`BERTH_SWARM_CERTIFICATES: there is no ${path}.`);
    return readFileSync(path);
  };
  const certificates = { ca: read("ca.pem"), cert: read("cert.pem"), key: read("key.pem") };
  return swarmManagers.map((address) => {
    const { hostname, port } = new URL(`https://${address}`);
    return openDockerApi({ host: hostname, port: Number(port), ...certificates });
  });
}

function registryOf(config: Config) {
  if (config.swarmRegistry !== null) return createGivenRegistry(config.swarmRegistry, config.swarmRegistryLogin);
  const program = findProgram("docker-registry", systemPath);
  if (program === null)
    throw new StartRefused(
      "BERTH_RUNTIME=swarm needs a registry of images: install Debian's package docker-registry, or set BERTH_SWARM_REGISTRY.",
    );
  const recall = createRecall();
  const address = async () => {
    const own = await recall("membership", () => readMembership(openDockerApi(config.dockerSocket)));
    if (own.address === "") throw new Error("this machine's Docker engine is not part of a swarm");
    return own.address;
  };
  const dir = join(pathsIn(config.dataDir).containers, "registry");
  return createOwnRegistry({ dir, program, port: config.swarmRegistryPort, address });
}
