import { openControlGroups } from "../adapters/postgres-host-local/control-groups.ts";
import { createLocalPostgresHost } from "../adapters/postgres-host-local/local-postgres-host.ts";
import { createServerPostgresHost } from "../adapters/postgres-host-server/server-postgres-host.ts";
import { createDiskLogStore } from "../adapters/log-store-disk/disk-log-store.ts";
import type { AddressPolicy } from "../kit/pinned-address.ts";
import { createLocalRepositories } from "../adapters/repositories-local/local-repositories.ts";
import { createPostgresTenantDatabase } from "../adapters/tenant-database-postgres/postgres-tenant-database.ts";
import { limitPlans } from "../building/limit-plans.ts";
import type { DataDisk } from "../ports/data-disk.ts";
import { removeRunFolder } from "../kit/run-folder.ts";
import { trustedCertificates } from "../sandbox/certificates.ts";
import { createConfinement, type Confinement } from "../sandbox/confine.ts";
import { mibToBytes, pathsIn } from "./config.ts";
import { createFamily } from "./create-family.ts";
import type { Foundation } from "./foundation.ts";
import { joinPostgresHosts } from "./join-postgres-hosts.ts";
import { pushLimitsOf } from "./limits.ts";
import { requirePart } from "./require-part.ts";
import { missingOnServer, withMissing } from "./server-isolation.ts";

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
  const ports = {
    builder: { ...builder, plan: limitPlans(builder, { isShort }) },
    runtime: server === null ? runtime : withMissing(runtime, () => missingOnServer(server.openDatabases())),
    postgresHost: instances,
    tenantDatabase: createPostgresTenantDatabase({
      connections: config.browserConnections,
      endSession: ({ spec }, processId) => instances.endSession(spec, processId),
      limitSession: ({ spec }, processId) => instances.limitSession(spec, processId),
    }),
    repositories: await createLocalRepositories({
      dir: paths.repositories,
      gitBin: requirePart(parts.git, "git"),
      confinement,
      access: {
        addresses,
        certificates: trustedCertificates(paths.repositories, config.caFile ?? undefined)?.pem ?? null,
      },
      log,
    }),
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

/** git runs as its own user: one uid below the one of the control plane's own database. */
function gitConfinement({ config, parts }: Foundation): Promise<Confinement> {
  return createConfinement(parts, { uid: config.databaseUidBase - 2, program: parts.git ?? "git" });
}

function postgresHost({ config, parts }: Foundation) {
  const { postgresBin } = parts;
  const { databases } = pathsIn(config.dataDir);
  const databaseGroups = openControlGroups(databases, {
    memoryBytes: mibToBytes(config.databaseMemoryMib),
    processes: config.databaseProcesses,
    cpus: config.databaseCpus,
  });
  // Without the server's programs everything but databases works, and creating a database fails with the reason.
  const local = createLocalPostgresHost({
    binDir: postgresBin ?? "/nonexistent",
    bwrap: parts.bwrap,
    dir: databases,
    groups: databaseGroups,
    pgDump: parts.pgDump,
    pgRestore: parts.pgRestore,
    uidBase: config.isRoot ? config.databaseUidBase : null,
  });
  const server =
    config.pgUrl === null
      ? null
      : createServerPostgresHost({
          ...{ server: config.pgUrl, dir: databases, bwrap: parts.bwrap, pgDump: parts.pgDump },
          ...{ pgRestore: parts.pgRestore, uidBase: config.isRoot ? config.databaseUidBase : null },
        });
  return { instances: joinPostgresHosts({ local, server, dir: databases }), databaseGroups, server };
}
