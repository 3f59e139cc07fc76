import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createDockerBuilder } from "../adapters/builder-docker/docker-builder.ts";
import { createDockerRuntime } from "../adapters/runtime-docker/docker-runtime.ts";
import { createSwarmRuntime } from "../adapters/runtime-swarm/swarm-runtime.ts";
import { trustedCertificates } from "../sandbox/certificates.ts";
import { mibToBytes, pathsIn } from "./config.ts";
import type { Family } from "./family.ts";
import { parentImages } from "./parent-images.ts";
import { packageServersOf, readPackageSettings } from "./package-settings.ts";
import { requireEngineSocket } from "./require-engine-socket.ts";
import { requireOciRuntime } from "./require-oci-runtime.ts";
import { requirePart } from "./require-part.ts";
import { StartRefused } from "./start-refused.ts";
import { edgePortsOf } from "./edge.ts";
import { databaseCaOf, pgPortsOf } from "./pg-settings.ts";
import { storageQuota } from "./storage-quota.ts";
import type { Foundation } from "./foundation.ts";
import { swarmParts } from "./swarm-parts.ts";

/**
 * Creates a builder that uses a build engine of Berth's own, and a runtime that uses this machine's Docker engine or the swarm that it
 * manages.
 */
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
      ...{ memoryBytes: mibToBytes(config.buildMemoryMib), processes: config.buildProcesses },
      ...{ fileBytes: mibToBytes(config.imageMib), cacheBytes: mibToBytes(config.imageMib) },
      open: [...options.open, ...(await packageServersOf(packages.env))],
      tenantNetworks: config.tenantNetworks,
      ...(config.caFile === null ? {} : { caFile: config.caFile }),
    },
    parents: parentImages(config),
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
