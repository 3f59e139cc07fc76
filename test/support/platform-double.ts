import { HttpsNames } from "../../src/features/certificates/certificates.ts";
import { createTerminals } from "../../src/features/runs/runs.ts";
import { silentLog } from "../../src/kit/log.ts";
import { systemClock } from "../../src/ports/clock.ts";
import type { Platform, ReconcileSettings } from "../../src/reconcile/platform.ts";
import type { Vault } from "../../src/store/vault.ts";
import {
  builderDouble,
  dnsDouble,
  edgeDouble,
  logStoreDouble,
  postgresHostDouble,
  repositoriesDouble,
  runtimeDouble,
  tenantDatabaseDouble,
  wakeupsDouble,
  storagesDouble,
} from "./port-doubles.ts";
import { emptyDisk, testDiskLimits, testDomains, type TestApi } from "./test-platform.ts";

/** The parts of a platform that a test provides; the others are doubles that do nothing. */
export interface PlatformParts extends Partial<Omit<Platform, "ports" | "settings">> {
  readonly ports?: Partial<Platform["ports"]>;
  readonly settings?: Partial<ReconcileSettings>;
}

/** Creates the platform that a task receives. A new member of `Platform` is a type error only here. */
export function platformDouble({ ports, settings, ...given }: PlatformParts): Platform {
  return {
    db: missing("db"),
    vault: missing<Vault>("vault"),
    wakeups: wakeupsDouble(),
    clock: systemClock,
    log: silentLog,
    owner: "test/1/1",
    machine: "test",
    ports: {
      runtime: runtimeDouble(),
      builder: builderDouble(),
      dataDisk: emptyDisk,
      edge: edgeDouble(),
      certificateIssuer: null,
      dnsProvider: null,
      postgresHost: postgresHostDouble(),
      repositories: repositoriesDouble(),
      platformArchive: missing("ports.platformArchive"),
      logStore: logStoreDouble(),
      storages: storagesDouble(),
      tenantDatabase: tenantDatabaseDouble(),
      dns: dnsDouble(),
      notifiers: [],
      mailTo: null,
      outgoingHttp: { send: async () => ({ outcome: "failed", reason: "not in this test" }) },
      ...ports,
    },
    ingestOutput: async () => {},
    terminals: createTerminals(),
    settings: { ...testSettings, ...settings },
    domains: testDomains,
    certificates: {
      ...{ directory: null, control: null, controlHost: null, appsDomain: null },
      ...{ weeklyFirsts: 40, weeklyPreviews: 20, httpPort: 80, probe: true, hsts: false, own: () => [] },
    },
    httpsNames: new HttpsNames(),
    appUrl: (hostname) => `http://${hostname}`,
    appsDomain: "apps.test",
    controlUrl: () => "http://berth.test",
    ...given,
  };
}

/** Creates a platform that shares the database and the ports of a test's API. */
export function platformBeside(api: TestApi, { ports, ...given }: PlatformParts = {}): Platform {
  const { db, vault, wakeups, clock, terminals, domains, addresses } = api.platform;
  const { builder, ...same } = api.platform.ports;
  return platformDouble({
    ...{ db, vault, wakeups, clock, terminals, domains, appUrl: addresses.appUrl },
    ports: { ...same, builder: builderDouble(builder), ...ports },
    ...given,
  });
}

/** A part that throws on access, because only the test can provide it. */
function missing<T extends object>(name: string): T {
  return new Proxy({} as T, {
    get: (_, member) => {
      throw new Error(`the test reached platform.${name}.${String(member)}, which it did not provide`);
    },
  });
}

const anySize = { memoryBytes: 2 ** 30, processes: 100 };
const neverFull = { warnPercent: 101, failPercent: 101 };

/** Settings with generous time limits and short intervals. */
export const testSettings: ReconcileSettings = {
  buildLimits: { ...anySize, timeoutMs: 900_000, silenceMs: 300_000 },
  privateRegistries: [],
  outgoingNetworks: [],
  concurrentBuilds: 4,
  concurrentReleases: 4,
  workloadLimits: { ...anySize, cpus: 1 },
  health: { everyMs: 50, timeoutMs: 5000, budgetMs: 60_000 },
  steadyMs: 0,
  backups: {
    ...{ window: null, retention: { daily: 7, weekly: 4, manual: 20 }, archiveDays: 7, archiveEveryMs: 60_000 },
    ...{ finalRetention: { days: 365, bytes: 1e9 }, concurrent: 2, timeoutMs: 120_000 },
  },
  branches: { minutes: 1440, perPlatform: 50, copyBytes: 1e9, maskMs: 60_000 },
  releaseTimeoutMs: 60_000,
  edgeConfirmMs: 60_000,
  restartHours: null,
  drainMs: 0,
  stopGraceMs: 0,
  cron: { timeoutMs: 60_000, readyWaitMs: 0, concurrent: 500, concurrentPerProject: 100, runsKept: 1000 },
  follow: { pollMs: 3_600_000, packBytes: 64 * 1024 ** 2, treeLimits: { entries: 1000, bytes: 1024 ** 2 } },
  monitors: {
    ...{
      everyMs: 15_000,
      coolDownMs: 900_000,
      machine: "test",
      version: "0.0.0-test",
      dataDir: "/nowhere",
      folders: {},
    },
    ...{ disk: neverFull, memory: neverFull, loadWarn: 1e9, backupAgeMs: 3_600_000 },
  },
  metrics: {
    retention: { hoursOfMinutes: 3, hoursOfQuarters: 48, days: 8 },
    pageLooks: { everySeconds: 60, timeoutMs: 10_000 },
  },
  purgeDays: 0,
  previews: { hours: 72, perProject: 5 },
  logLines: { burst: 20_000, perSecond: 1000 },
  disk: testDiskLimits,
  rehearsalLosses: { rows: 100, percent: 1 },
  history: { days: 400, perProject: 100 },
};
