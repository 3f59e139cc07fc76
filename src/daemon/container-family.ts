import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createDockerBuilder } from "../adapters/builder-docker/docker-builder.ts";
import { createDockerRuntime } from "../adapters/runtime-docker/docker-runtime.ts";
import { createGivenRegistry } from "../adapters/runtime-swarm/given-registry.ts";
import { createOwnRegistry } from "../adapters/runtime-swarm/own-registry.ts";
import { createRecall } from "../adapters/runtime-swarm/recall.ts";
import { readMembership } from "../adapters/runtime-swarm/swarm-api.ts";
import { createSwarmRuntime } from "../adapters/runtime-swarm/swarm-runtime.ts";
import { offersOciRuntime, readEngineFacts } from "../containers/engine-facts.ts";
import { openDockerApi } from "../kit/docker-api.ts";
import { systemPath } from "../kit/exec.ts";
import { trustedCertificates } from "../sandbox/certificates.ts";
import { StartRefused, mibToBytes, pathsIn, type Config } from "./config.ts";
import { edgePortsOf } from "./edge.ts";
import { requirePart, storageQuota, type Family, type Foundation } from "./family.ts";
import { packageServersOf, readPackageSettings } from "./package-settings.ts";
import { databaseCaOf, pgPortsOf } from "./pg-settings.ts";
import { findProgram } from "./setup/find-program.ts";

/** Creates a builder that uses a build engine of Berth's own, and a runtime that uses this machine's Docker engine or the swarm that it manages. */
export async function createContainerFamily(
  { config, parts, log }: Foundation,
  kind: "docker" | "swarm",
): Promise<Family> {
  const paths = pathsIn(config.dataDir);
  if (!config.isRoot)
    throw new StartRefused(`BERTH_RUNTIME=${kind} needs root: start Berth with sudo, or leave the setting out.`);
  for (const [name, part] of Object.entries({ nft: parts.nft, ip: parts.ip, socat: parts.socat }))
    requirePart(part, name);
  // A swarm can have other managers, whose engines answer instead.
  if (kind === "docker") requireEngineSocket(config.dockerSocket);
  await requireOciRuntime(config, kind);
  const packages = await readPackageSettings(config, parts);
  const options = {
    socketPath: config.dockerSocket,
    stateDir: paths.containers,
    storageDir: (projectId: string) => join(paths.storage, projectId),
    quota: storageQuota(config, paths.storage),
    uidBase: config.uidBase,
    layerBytes: mibToBytes(config.appFolderMib),
    ...{ open: await pgPortsOf(config), tenantNetworks: config.tenantNetworks },
    ...{ edgePorts: edgePortsOf(config), ociRuntime: config.dockerRuntime },
    log,
    ...(config.caFile === null ? {} : { caFile: config.caFile }),
    ...databaseCaOf(config),
  };
  const swarm = kind === "swarm" ? swarmParts(config) : undefined;
  const local = await createDockerRuntime(options);
  const runtime = swarm === undefined ? local : createSwarmRuntime(local, swarm);
  const builder = await createDockerBuilder({
    runSocket: config.dockerSocket,
    buildsDir: paths.builds,
    engine: {
      dir: paths.buildEngine,
      parts,
      nodeBin: process.execPath,
      ...{ memoryBytes: mibToBytes(config.buildMemoryMib), processes: 1024 },
      ...{ fileBytes: mibToBytes(config.imageMib), cacheBytes: mibToBytes(config.imageMib) },
      open: [...options.open, ...(await packageServersOf(packages.env))],
      tenantNetworks: config.tenantNetworks,
      ...(config.caFile === null ? {} : { caFile: config.caFile }),
    },
    parents: config.parentImages,
    sharedImages: config.sharedImages,
    privateRegistries: config.privateRegistries,
    packageEnv: packages.env,
    certificates: readTrusted(options),
    diskFloorBytes: mibToBytes(config.diskFloorMib),
    buildDiskBytes: mibToBytes(config.buildDiskMib),
    maxSourceBytes: mibToBytes(config.treeMib),
    maxImageBytes: mibToBytes(config.imageMib),
  });
  const leave = async () => {
    await builder.close();
    await runtime.dismantle();
    runtime.close();
    await swarm?.registry.close();
  };
  return { builder, runtime, leave };
}

type Trusting = Parameters<typeof createDockerRuntime>[0];

/** Returns the certificates that the steps of a build trust; null for those of the base image. */
function readTrusted({ stateDir, caFile, databaseCaFile }: Trusting): Buffer | null {
  const trusted = caFile === undefined ? null : trustedCertificates(stateDir, caFile, databaseCaFile);
  return trusted === null ? null : readFileSync(trusted.pem);
}

/** Throws `StartRefused` if the Docker engine's socket does not exist. */
export function requireEngineSocket(dockerSocket: string): void {
  if (existsSync(dockerSocket)) return;
  throw new StartRefused(
    `BERTH_RUNTIME=docker: no Docker engine listens on ${dockerSocket}. Start the engine, or name its socket in BERTH_DOCKER_SOCKET.`,
  );
}

/**
 * Throws `StartRefused` if applications would not start under BERTH_DOCKER_RUNTIME, or would start under another runtime. An engine that
 * does not answer is not an error here: the runtime's description reports it, and later a runtime that the engine does not have.
 */
export async function requireOciRuntime(
  { dockerRuntime: name, dockerSocket }: Pick<Config, "dockerRuntime" | "dockerSocket">,
  kind: "docker" | "swarm",
): Promise<void> {
  if (name === null) return;
  if (kind === "swarm")
    throw new StartRefused(
      `BERTH_DOCKER_RUNTIME=${name} does not work with BERTH_RUNTIME=swarm: a service of a swarm cannot choose its runtime, so replicas would run under the engines' default. Leave BERTH_DOCKER_RUNTIME out, or take swarm out of BERTH_RUNTIME.`,
    );
  const facts = await readEngineFacts(openDockerApi(dockerSocket)).catch(() => null);
  if (facts === null || offersOciRuntime(facts, name)) return;
  throw new StartRefused(
    `BERTH_DOCKER_RUNTIME=${name}: the Docker engine at ${dockerSocket} has no such runtime, only ${facts.ociRuntimes.join(", ")}. Add it to "runtimes" in the engine's daemon.json and restart the engine, or leave the setting out for the engine's default.`,
  );
}

/** Returns what a swarm needs besides this machine's engine: an image registry, the addresses of the edges and other managers. */
function swarmParts(config: Config) {
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
  if (config.swarmRegistry !== null) return createGivenRegistry(config.swarmRegistry.name, config.swarmRegistry.login);
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
