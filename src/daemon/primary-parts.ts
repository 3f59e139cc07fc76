import { join } from "node:path";
import { createDiskLogStore } from "../adapters/log-store-disk/disk-log-store.ts";
import { openControlGroups } from "../adapters/postgres-host-local/control-groups.ts";
import { createLocalPostgresHost } from "../adapters/postgres-host-local/local-postgres-host.ts";
import { createServerPostgresHost } from "../adapters/postgres-host-server/server-postgres-host.ts";
import { createLocalRepositories } from "../adapters/repositories-local/local-repositories.ts";
import { createPostgresTenantDatabase } from "../adapters/tenant-database-postgres/postgres-tenant-database.ts";
import { createAgePlatformArchive } from "../adapters/platform-archive-age/age-platform-archive.ts";
import { ensureRecoveryKey } from "../adapters/platform-archive-age/recovery-key.ts";
import { limitPlans } from "../building/limit-plans.ts";
import { knownRecipient } from "../features/platform/platform.ts";
import type { AddressPolicy } from "../kit/pinned-address.ts";
import { removeRunFolder } from "../kit/run-folder.ts";
import type { DataDisk } from "../ports/data-disk.ts";
import type { PlatformArchive } from "../ports/platform-archive.ts";
import type { Repositories } from "../ports/repositories.ts";
import { trustedCertificates } from "../sandbox/certificates.ts";
import { createConfinement, type Confinement } from "../sandbox/confine.ts";
import { firstDatabaseUid, givenSettings, mibToBytes, pathsIn, pushLimitsOf } from "./config.ts";
import { keptFiles, recoveryKeyFiles } from "./recovery/kept-files.ts";
import { createContainerFamily } from "./container-family.ts";
import {
  joinBuilders,
  joinRuntimes,
  requirePart,
  type Family,
  type Foundation,
  type Member,
  storageQuota,
} from "./family.ts";
import { joinPostgresHosts, missingOnServer, withMissing } from "./postgres-hosts.ts";
import { createProcessBuilder } from "../adapters/builder-process/process-builder.ts";
import { findLanguages } from "../adapters/builder-process/tools/machine-languages.ts";
import { createProcessRuntime } from "../adapters/runtime-process/process-runtime.ts";
import { createSandbox } from "../sandbox/sandbox.ts";
import { edgePortsOf } from "./edge.ts";
import { packageServersOf, readPackageSettings } from "./package-settings.ts";
import { databaseCaOf, pgPortsOf } from "./pg-settings.ts";

/** Creates the parts that need the primary control plane's disk or run on its machine. */
export async function createPrimaryParts(
  foundation: Foundation,
  { addresses, dataDisk }: { readonly addresses: AddressPolicy; readonly dataDisk: DataDisk },
) {
  const { config, parts, log } = foundation;
  const paths = pathsIn(config.dataDir);
  const limits = pushLimitsOf(config);
  const { instances, databaseGroups, server } = postgresHost(foundation);
  // Not awaited, and only a warning: an unreachable server must not stop the rest of the platform.
  void server
    ?.check()
    .catch((error: unknown) => log.warn({ err: error }, "the server of BERTH_PG_URL cannot be used at the moment"));
  const { builder, runtime, leave } = await createFamily(foundation);
  const confinement = await gitConfinement(foundation);
  const isShort = async () => (await dataDisk.observe()).is_short || (await builder.isShortOfSpace());
  const repositories = await createLocalRepositories({
    dir: paths.repositories,
    gitBin: requirePart(parts.git, "git"),
    confinement,
    access: {
      addresses,
      certificates: trustedCertificates(paths.repositories, config.caFile ?? undefined)?.pem ?? null,
    },
    log,
  });
  const ports = {
    builder: { ...builder, plan: limitPlans(builder, { isShort }) },
    runtime: server === null ? runtime : withMissing(runtime, () => missingOnServer(server.openDatabases())),
    postgresHost: instances,
    tenantDatabase: createPostgresTenantDatabase({
      connections: 3,
      endSession: ({ spec }, processId) => instances.endSession(spec, processId),
      limitSession: ({ spec }, processId) => instances.limitSession(spec, processId),
    }),
    repositories,
    platformArchive: platformArchiveOf(foundation, repositories, dataDisk),
    logStore: createDiskLogStore({ dir: paths.logs, buildLimitBytes: limits.build_log_bytes }),
  };
  const leaveMachine = async () => {
    await leave();
    databaseGroups.dismantle();
    removeRunFolder(paths.databases);
    removeRunFolder(paths.repositories);
  };
  return { ports, confinement, leaveMachine };
}

function platformArchiveOf(
  { config, parts, database }: Foundation,
  repositories: Repositories,
  dataDisk: DataDisk,
): PlatformArchive {
  const paths = pathsIn(config.dataDir);
  return createAgePlatformArchive({
    ...{ dir: paths.packing, connection: database.pool.options, pgDump: parts.pgDump, repositories },
    files: keptFiles(config),
    settings: givenSettings(),
    hasRoom: async () => !(await dataDisk.observe()).is_short,
    recipient: async () => ensureRecoveryKey(recoveryKeyFiles(config), await knownRecipient(database.db)),
  });
}

/** git runs as its own user: one uid below the one of the control plane's own database. */
function gitConfinement({ config, parts }: Foundation): Promise<Confinement> {
  return createConfinement(parts, { uid: firstDatabaseUid(config) - 2, program: parts.git ?? "git" });
}

function postgresHost({ config, parts }: Foundation) {
  const { postgresBin } = parts;
  const { databases } = pathsIn(config.dataDir);
  const databaseGroups = openControlGroups(databases, {
    memoryBytes: mibToBytes(config.databaseMemoryMib),
    processes: 100,
    cpus: config.appCpus,
  });
  // Without the server's programs everything but databases works, and creating a database fails with the reason.
  const local = createLocalPostgresHost({
    binDir: postgresBin ?? "/nonexistent",
    bwrap: parts.bwrap,
    dir: databases,
    groups: databaseGroups,
    pgDump: parts.pgDump,
    pgRestore: parts.pgRestore,
    uidBase: config.isRoot ? firstDatabaseUid(config) : null,
  });
  const server =
    config.pgUrl === null
      ? null
      : createServerPostgresHost({
          ...{ server: config.pgUrl, dir: databases, bwrap: parts.bwrap, pgDump: parts.pgDump },
          ...{ pgRestore: parts.pgRestore, uidBase: config.isRoot ? firstDatabaseUid(config) : null },
        });
  return { instances: joinPostgresHosts({ local, server, dir: databases }), databaseGroups, server };
}

/** Creates the families that BERTH_RUNTIME names, joined into one. Docker and Swarm are one: they use the same engine. */
async function createFamily(foundation: Foundation): Promise<Family> {
  const { runtimes } = foundation.config;
  const engine = runtimes.includes("swarm") ? "swarm" : "docker";
  const created = new Map<"process" | typeof engine, Family>();
  const members: Member[] = [];
  for (const name of runtimes) {
    const kind = name === "process" ? name : engine;
    const family =
      created.get(kind) ??
      (await (kind === "process" ? createProcessFamily(foundation) : createContainerFamily(foundation, kind)));
    created.set(kind, family);
    members.push({ name, builder: family.builder, runtime: family.runtime });
  }
  const [first, ...others] = members as [Member, ...Member[]];
  return {
    builder: joinBuilders([first, ...others]),
    runtime: joinRuntimes([first, ...others]),
    async leave() {
      for (const family of created.values()) await family.leave();
    },
  };
}

/** Creates a builder and a runtime that use sandboxed processes on this machine, without a container engine. */
async function createProcessFamily({ config, parts, log }: Foundation): Promise<Family> {
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
