import { join } from "node:path";
import { createProcessBuilder } from "../adapters/builder-process/process-builder.ts";
import { findLanguages } from "../adapters/builder-process/tools/machine-languages.ts";
import { createProcessRuntime } from "../adapters/runtime-process/process-runtime.ts";
import { createSandbox } from "../sandbox/sandbox.ts";
import { mibToBytes, pathsIn } from "./config.ts";
import { edgePortsOf } from "./edge.ts";
import { requirePart, storageQuota, type Family, type Foundation } from "./family.ts";
import { packageServersOf, readPackageSettings } from "./package-settings.ts";
import { databaseCaOf, pgPortsOf } from "./pg-settings.ts";

/** Creates a builder and a runtime that use sandboxed processes on this machine, without a container engine. */
export async function createProcessFamily({ config, parts, log }: Foundation): Promise<Family> {
  const paths = pathsIn(config.dataDir);
  const packages = await readPackageSettings(config, parts);
  if (packages.withheld.length > 0)
    log.warn(
      { settings: packages.withheld },
      "builds do not get these package settings because they contain credentials",
    );
  const sandbox = await createSandbox({
    parts,
    stateDir: paths.sandbox,
    nodeBin: process.execPath,
    network: config.network,
    layerBytes: mibToBytes(config.appFolderMib),
    hide: [config.dataDir],
    open: [...(await pgPortsOf(config)), ...(await packageServersOf(packages.env))],
    tenantNetworks: config.tenantNetworks,
    edgePorts: edgePortsOf(config),
    ...(config.caFile === null ? {} : { caFile: config.caFile }),
    ...databaseCaOf(config),
  });
  const builder = await createProcessBuilder({
    releasesDir: paths.releases,
    buildsDir: paths.builds,
    cachesDir: paths.caches,
    toolsDir: join(config.dataDir, "toolchain", "builds"),
    sandbox,
    nodeBin: process.execPath,
    npmDir: requirePart(packages.npmDir, "npm"),
    pythonBin: parts.python,
    goRoot: packages.goRoot,
    languages: await findLanguages(config.toolEnvironment),
    uidBase: config.uidBase,
    packageEnv: packages.env,
    ownPackageEnv: packages.ownEnv,
    packageDirs: packages.dirs,
    sharesInstalls: config.sharesInstalls,
    maxSourceBytes: mibToBytes(config.treeMib),
    buildDiskBytes: mibToBytes(config.buildDiskMib),
    imageLimits: { bytes: mibToBytes(config.imageMib), entries: 500_000 },
    log,
    ...(config.caFile === null ? {} : { caFile: config.caFile }),
  });
  const runtime = await createProcessRuntime({
    stateDir: paths.runtime,
    releasesDir: paths.releases,
    storageDir: (projectId) => join(paths.storage, projectId),
    quota: storageQuota(config, paths.storage),
    sandbox,
    uidBase: config.uidBase,
    log,
  });
  const leave = async () => {
    runtime.close();
    await builder.close();
    await sandbox.sweep("build", []);
    await sandbox.dismantle();
  };
  return { builder, runtime, leave };
}
