import { hostname } from "node:os";
import packageJson from "../../package.json" with { type: "json" };
import { createLocalDataDisk } from "../adapters/data-disk-local/local-data-disk.ts";
import { createDnsResolver } from "../adapters/dns-resolver/dns-resolver.ts";
import { createOutgoingHttp } from "../adapters/outgoing-http/outgoing-http.ts";
import { HttpsNames } from "../features/certificates/certificates.ts";
import { createAddressGuard } from "../kit/reachable-addresses.ts";
import { createTerminals } from "../features/runs/runs.ts";
import type { Log } from "../kit/log.ts";
import { formatOwner, ownIdentity } from "../kit/processes.ts";
import type { Confinement } from "../sandbox/confine.ts";
import { systemClock } from "../ports/clock.ts";
import type { DnsAnswer } from "../ports/dns.ts";
import { createIngest } from "../reconcile/logs/ingest.ts";
import type { Platform } from "../reconcile/platform.ts";
import { openVault } from "../store/vault.ts";
import { certificateIssuerOf, certificateSettingsOf } from "./certificate-settings.ts";
import { machineName } from "./data-folder.ts";
import { dnsProviderOf } from "./dns-provider.ts";
import { createEdge } from "./edge.ts";
import { noEdge, partsOfPrimary } from "./elsewhere.ts";
import type { Foundation } from "./foundation.ts";
import { addressesOf, domainSettingsOf } from "./addresses.ts";
import { mibToBytes, pathsIn, type Config } from "./config.ts";
import { diskLimitsOf, pushLimitsOf } from "./limits.ts";
import { createPrimaryParts } from "./primary-parts.ts";
import { mailToOf, notifiersOf } from "./notifiers.ts";
import { storagesOf } from "./storages.ts";

/** Creates the platform. This composition root is the only place that gives a port its adapter. */
export async function wire(foundation: Foundation): Promise<Wired> {
  const { config, database, wakeups, log } = foundation;
  const dns = createDnsResolver({ servers: config.dnsServers, timeoutMs: 3000 });
  const addresses = {
    resolve: async (hostname: string) => valuesOf(await dns.addresses(hostname)),
    mayReach: createAddressGuard(config.outgoingNetworks),
  };
  const dataDisk = dataDiskOf(config);
  const primary = config.roles.includes("git") ? await createPrimaryParts(foundation, { addresses, dataDisk }) : null;
  const paths = pathsIn(config.dataDir);
  const platform = {
    db: database.db,
    vault: openVault({ keyFile: config.keyFile ?? paths.keyFile }),
    wakeups,
    clock: systemClock,
    log,
    ...{ owner: formatOwner(ownIdentity()), machine: machineName(config.dataDir) },
    ports: {
      ...(primary?.ports ?? partsOfPrimary(database.db)),
      dataDisk,
      edge: config.roles.includes("edge") ? createEdge(foundation) : noEdge(),
      certificateIssuer: await certificateIssuerOf(config),
      dnsProvider: dnsProviderOf(config),
      storages: storagesOf(config, paths.backups),
      dns,
      outgoingHttp: createOutgoingHttp(addresses),
      notifiers: notifiersOf(config, log),
      mailTo: mailToOf(config),
    },
    settings: settingsOf(config),
    terminals: createTerminals(),
    ...httpsOf(config, log),
  };
  return { platform: { ...platform, ingestOutput: createIngest(platform) }, primary };
}

function valuesOf(answer: DnsAnswer): readonly string[] {
  return answer.outcome === "found" ? answer.values : [];
}

interface Wired {
  readonly platform: Platform;
  /** Null unless this process is the primary control plane. */
  readonly primary: {
    /** Isolates git from the machine while it reads pushed data. */
    readonly confinement: Confinement;
    /**
     * Removes what was created on this machine for applications and databases: networks, rules, control groups. Call it only once none of
     * them runs.
     */
    readonly leaveMachine: () => Promise<void>;
  } | null;
}

function httpsOf(config: Config, log: Log) {
  const httpsNames = new HttpsNames();
  const addresses = addressesOf(config, httpsNames);
  const { appUrl } = addresses;
  const controlUrl = () => addresses.controlUrl;
  const domains = domainSettingsOf(config, httpsNames);
  return { certificates: certificateSettingsOf(config, log), httpsNames, appUrl, controlUrl, domains };
}

/** Opens the disk of the data folder. */
export function dataDiskOf(config: Config) {
  return createLocalDataDisk({ dataDir: config.dataDir, floorBytes: mibToBytes(config.diskFloorMib) });
}

function settingsOf(config: Config): Platform["settings"] {
  const seconds = (count: number) => count * 1000;
  return {
    buildLimits: {
      memoryBytes: mibToBytes(config.buildMemoryMib),
      processes: config.buildProcesses,
      timeoutMs: seconds(config.buildSeconds),
      silenceMs: seconds(config.silenceSeconds),
    },
    privateRegistries: config.privateRegistries,
    outgoingNetworks: config.outgoingNetworks,
    concurrentBuilds: config.concurrentBuilds,
    concurrentReleases: 8,
    workloadLimits: {
      memoryBytes: mibToBytes(config.appMemoryMib),
      processes: config.appProcesses,
      cpus: config.appCpus,
    },
    steadyMs: seconds(config.steadySeconds),
    health: {
      everyMs: 1000,
      timeoutMs: seconds(config.healthTimeoutSeconds),
      budgetMs: seconds(config.healthBudgetSeconds),
    },
    releaseTimeoutMs: seconds(config.releaseSeconds),
    edgeConfirmMs: 15_000,
    backups: {
      daily: config.backupDaily,
      window: { startHour: config.backupStartHour, hours: config.backupWindowHours },
      retention: { daily: config.backupKeepDaily, weekly: config.backupKeepWeekly, manual: config.backupKeepManual },
      finalRetention: { days: config.finalBackupDays, bytes: mibToBytes(config.finalBackupsMib) },
      concurrent: config.concurrentBackups,
      timeoutMs: seconds(config.backupHours * 3600),
    },
    drainMs: seconds(config.drainSeconds),
    stopGraceMs: seconds(config.stopGraceSeconds),
    appPort: config.appPort,
    metrics: {
      retention: { hoursOfMinutes: 3, hoursOfQuarters: 48, days: config.metricsDays },
      pageLooks: { everySeconds: config.pageLookSeconds, timeoutMs: 10_000 },
    },
    purgeDays: config.purgeDays,
    logLines: { burst: config.logLinesBurst, perSecond: config.logLinesPerSecond },
    disk: diskLimitsOf(config),
    history: { days: config.historyDays, perProject: 100 },
    follow: followSettingsOf(config),
    cron: {
      timeoutMs: seconds(config.cronTimeoutSeconds),
      readyWaitMs: seconds(config.healthBudgetSeconds),
      concurrent: config.concurrentCronCalls,
      concurrentPerProject: config.projectCronCalls,
      runsKept: config.cronRunsKept,
    },
    monitors: monitorSettingsOf(config),
  };
}

function followSettingsOf(config: Config): Platform["settings"]["follow"] {
  const { pack_bytes, tree_entries, tree_bytes } = pushLimitsOf(config);
  const treeLimits = { entries: tree_entries, bytes: tree_bytes };
  return { pollMs: config.followMinutes * 60_000, packBytes: pack_bytes, treeLimits };
}

function monitorSettingsOf(config: Config): Platform["settings"]["monitors"] {
  const { ownPostgres, databases, repositories, releases, builds, caches, storage, logs, backups } = pathsIn(
    config.dataDir,
  );
  return {
    everyMs: config.monitorSeconds * 1000,
    coolDownMs: config.alertPauseMinutes * 60_000,
    // Two processes on one machine must have different names.
    machine: config.roles.includes("git") ? hostname() : machineName(config.dataDir),
    version: packageJson.version,
    dataDir: config.dataDir,
    folders: {
      control_database: ownPostgres,
      databases,
      repositories,
      releases,
      builds,
      caches,
      storage,
      logs,
      backups,
    },
    disk: { warnPercent: config.diskWarnPercent, failPercent: config.diskFullPercent },
    memory: { warnPercent: config.memoryWarnPercent, failPercent: config.memoryFullPercent },
    loadWarn: config.loadWarn,
    backupAgeMs: config.backupAgeHours * 3_600_000,
  };
}
