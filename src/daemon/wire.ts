import type { Readable } from "node:stream";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import packageJson from "../../package.json" with { type: "json" };
import { createLocalDataDisk } from "../adapters/data-disk-local/local-data-disk.ts";
import { createDnsResolver } from "../adapters/dns-resolver/dns-resolver.ts";
import { createOutboxNotifier } from "../adapters/notifier-outbox/outbox-notifier.ts";
import { createSmtpNotifier } from "../adapters/notifier-smtp/smtp-notifier.ts";
import { createWebhookNotifier } from "../adapters/notifier-webhook/webhook-notifier.ts";
import { createOutgoingHttp } from "../adapters/outgoing-http/outgoing-http.ts";
import { createAgeStorage, encryptTo } from "../adapters/storage-age/age-storage.ts";
import { createDiskStorage } from "../adapters/storage-disk/disk-storage.ts";
import { createS3Storage, type S3StorageOptions } from "../adapters/storage-s3/s3-storage.ts";
import { HttpsNames } from "../features/certificates/certificates.ts";
import type { Addresses } from "../features/context.ts";
import type { DomainSettings } from "../features/domains/domains.ts";
import { createTerminals } from "../features/runs/runs.ts";
import type { Log } from "../kit/log.ts";
import { formatOwner, ownIdentity } from "../kit/processes.ts";
import { createAddressGuard } from "../kit/reachable-addresses.ts";
import { systemClock } from "../ports/clock.ts";
import type { DnsAnswer } from "../ports/dns.ts";
import type { MailTo, Notifier } from "../ports/notifier.ts";
import type { Storages } from "../ports/storage.ts";
import { createIngest } from "../reconcile/logs/ingest.ts";
import type { Platform } from "../reconcile/platform.ts";
import type { Confinement } from "../sandbox/confine.ts";
import { openVault } from "../store/vault.ts";
import { certificateIssuerOf, certificateSettingsOf, dnsProviderOf } from "./certificate-settings.ts";
import { StartRefused, diskLimitsOf, mibToBytes, pathsIn, pushLimitsOf, type Config } from "./config.ts";
import { machineName } from "./data-folder.ts";
import { createEdge } from "./edge.ts";
import { noEdge, partsOfPrimary } from "./elsewhere.ts";
import { identitiesOf, recipientsOf } from "./recovery/kept-files.ts";
import type { Foundation } from "./family.ts";
import { createPrimaryParts } from "./primary-parts.ts";

/** Creates the platform. This composition root is the only place that gives a port its adapter. `identity` is a recovery key from elsewhere. */
export async function wire({
  identity = null,
  ...foundation
}: Foundation & { readonly identity?: string | null }): Promise<Wired> {
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
      storages: storagesOf(config, identity),
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
    /** Removes this machine's networks, rules and control groups of applications and databases. Call it only once none of them runs. */
    readonly leaveMachine: () => Promise<void>;
  } | null;
}

function httpsOf(config: Config, log: Log) {
  const httpsNames = new HttpsNames();
  const addresses = addressesOf(config, httpsNames);
  const { appUrl, appsDomain } = addresses;
  const controlUrl = () => addresses.controlUrl;
  const domains = domainSettingsOf(config, httpsNames);
  return { certificates: certificateSettingsOf(config, log), httpsNames, appUrl, appsDomain, controlUrl, domains };
}

export function dataDiskOf(config: Config) {
  return createLocalDataDisk({ dataDir: config.dataDir, floorBytes: mibToBytes(config.diskFloorMib) });
}

function settingsOf(config: Config): Platform["settings"] {
  const seconds = (count: number) => count * 1000;
  return {
    buildLimits: {
      memoryBytes: mibToBytes(config.buildMemoryMib),
      processes: 1024,
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
    steadyMs: seconds(3),
    health: {
      everyMs: 1000,
      timeoutMs: seconds(5),
      budgetMs: seconds(config.healthBudgetSeconds),
    },
    releaseTimeoutMs: seconds(config.buildSeconds),
    edgeConfirmMs: 15_000,
    backups: {
      window: config.backupWindow,
      retention: { daily: config.backupKeepDaily, weekly: 4, manual: 20 },
      ...{ archiveDays: config.archiveDays, archiveEveryMs: config.archiveSeconds * 1000 },
      finalRetention: { days: config.finalBackupDays, bytes: mibToBytes(config.finalBackupsMib) },
      concurrent: 2,
      timeoutMs: seconds(config.backupHours * 3600),
    },
    branches: branchSettingsOf(config),
    restartHours: config.restartHours,
    drainMs: seconds(config.drainSeconds),
    stopGraceMs: seconds(config.stopGraceSeconds),
    metrics: {
      retention: { hoursOfMinutes: 3, hoursOfQuarters: 48, days: 8 },
      pageLooks: { everySeconds: config.pageLookSeconds, timeoutMs: 10_000 },
    },
    purgeDays: config.purgeDays,
    previews: { hours: config.previewHours, perProject: config.previewsPerProject },
    logLines: { burst: 20 * config.logLinesPerSecond, perSecond: config.logLinesPerSecond },
    disk: diskLimitsOf(config),
    rehearsalLosses: { rows: config.rehearsalRows, percent: config.rehearsalPercent },
    history: { days: config.historyDays, perProject: 100 },
    follow: followSettingsOf(config),
    cron: {
      timeoutMs: seconds(300),
      readyWaitMs: seconds(config.healthBudgetSeconds),
      concurrent: 1000,
      concurrentPerProject: 50,
      runsKept: 1000,
    },
    monitors: monitorSettingsOf(config),
  };
}

function branchSettingsOf(config: Config): Platform["settings"]["branches"] {
  return {
    ...{ minutes: config.branchMinutes, perPlatform: config.branches },
    ...{ copyBytes: mibToBytes(config.branchCopyMib), maskMs: config.maskSeconds * 1000 },
  };
}

function followSettingsOf(config: Config): Platform["settings"]["follow"] {
  const { pack_bytes, tree_entries, tree_bytes } = pushLimitsOf(config);
  const treeLimits = { entries: tree_entries, bytes: tree_bytes };
  return { pollMs: 10 * 60_000, packBytes: pack_bytes, treeLimits };
}

function monitorSettingsOf(config: Config): Platform["settings"]["monitors"] {
  const { ownPostgres, databases, repositories, releases, builds, caches, storage, logs, backups } = pathsIn(
    config.dataDir,
  );
  return {
    everyMs: config.monitorSeconds * 1000,
    coolDownMs: 15 * 60_000,
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
    disk: { warnPercent: 85, failPercent: 95 },
    memory: { warnPercent: 90, failPercent: 97 },
    loadWarn: 4,
    backupAgeMs: 30 * 3_600_000,
  };
}

/** Returns how users reach applications and git: over HTTPS once the edge has a certificate for the name. URLs omit a protocol's default port. */
export function addressesOf(config: Config, https: Pick<HttpsNames, "has">): Addresses {
  const withPort = (port: number, usual: number) => (port === usual ? "" : `:${port}`);
  const urlOf = (hostname: string, plainPort: number) =>
    https.has(hostname)
      ? `https://${hostname}${withPort(config.edgeTlsPort, 443)}`
      : `http://${hostname}${withPort(plainPort, 80)}`;
  return {
    appsDomain: config.domain,
    get controlUrl() {
      return urlOf(config.host, config.httpPort);
    },
    appUrl: (hostname) => urlOf(hostname, config.edgePort),
    gitSsh: (org, slug) => `ssh://git@${config.host}${withPort(config.sshPort, 22)}/${org}/${slug}.git`,
    gitHttp: (org, slug) => `${urlOf(config.host, config.httpPort)}/git/${org}/${slug}.git`,
  };
}

/** Returns the addresses that users' hostnames must point to, and the platform's own names, which users can't attach. */
export function domainSettingsOf(config: Config, https: Pick<HttpsNames, "has">): DomainSettings {
  const plain = (name: string) => name.toLowerCase().replace(/\.$/, "");
  const publicAddresses = config.publicAddresses.length > 0 ? config.publicAddresses : addressesOfListen(config.listen);
  const isPublic = config.publicAddresses.length > 0 || publicAddresses.some((address) => !isLoopback(address));
  const graceMs = 72 * 3_600_000;
  return {
    ...{ appsDomain: plain(config.domain), controlHost: plain(config.host), publicAddresses, isPublic, graceMs },
    ordersCertificates: config.acmeDirectory !== null,
    servesHttps: (hostname) => https.has(hostname),
  };
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}

/** Returns the addresses at which clients reach `listen`: for a wildcard all but loopback and link-local ones, else 127.0.0.1. */
function addressesOfListen(listen: string): readonly string[] {
  if (isIP(listen) > 0 && listen !== "0.0.0.0" && listen !== "::") return [listen];
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outside = all.filter((each) => !each.internal && !each.address.startsWith("fe80:")).map((each) => each.address);
  const usable = listen === "0.0.0.0" ? outside.filter((address) => isIP(address) === 4) : outside;
  return isIP(listen) > 0 && usable.length > 0 ? usable : ["127.0.0.1"];
}

type StorageConfig = Pick<Config, "s3Url" | "s3SecretKeyFile" | "dataDir">;

/**
 * Returns the storages of backups: always the disk, because older backups may be there, and an S3-compatible store, which is the default
 * once it is configured and gets everything encrypted. `identity` is a recovery key that is not in the data folder.
 */
export function storagesOf(config: StorageConfig, identity: string | null = null): Storages {
  const disk = createDiskStorage({ dir: pathsIn(config.dataDir).backups });
  const encrypt = async (content: Readable) => encryptTo((await recipientsOf(config)).slice(0, 1), content);
  const bucket = bucketOf(config);
  if (bucket === null) return { standard: "disk", named: { disk }, encrypt };
  const s3 = createAgeStorage({
    storage: createS3Storage(bucket),
    recipients: () => recipientsOf(config),
    identities: () => identitiesOf(config, identity),
    // Backups of the platform are encrypted already, and what lists them must be found without a key.
    isPlain: (key) => key.startsWith("platform/") || key === storageProbe,
  });
  return { standard: "s3", named: { disk, s3 }, encrypt };
}

/** The file with which `berthd doctor` tries the store, also before there is a key. */
export const storageProbe = "doctor/probe";

/** Returns the S3-compatible store's options; null if none is configured. Throws `StartRefused` if its settings are incomplete or wrong. */
function bucketOf({ s3Url, s3SecretKeyFile }: StorageConfig): S3StorageOptions | null {
  if (s3Url === null && s3SecretKeyFile === null) return null;
  if (s3Url === null || s3SecretKeyFile === null)
    throw new StartRefused("BERTH_S3_URL and BERTH_S3_SECRET_KEY_FILE belong together: set both or neither.");
  const url = URL.parse(s3Url);
  const [, bucket = "", prefix = ""] = /^\/([^/]+)\/?(.*)$/.exec(url?.pathname ?? "") ?? [];
  if (url === null || !/^https?:$/.test(url.protocol) || url.username === "" || url.password !== "" || bucket === "")
    throw new StartRefused(
      "BERTH_S3_URL must be like https://ACCESS-KEY-ID@s3.eu-central-1.amazonaws.com/bucket/berth/?region=eu-central-1.",
    );
  return {
    endpoint: url.origin,
    ...{ bucket, prefix: decodeURIComponent(prefix), region: url.searchParams.get("region") ?? "us-east-1" },
    ...{ accessKeyId: decodeURIComponent(url.username), secretKey: readSecret(s3SecretKeyFile) },
  };
}

function readSecret(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new StartRefused(`BERTH_S3_SECRET_KEY_FILE cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
  }
}

type NotifierConfig = Pick<Config, "dataDir" | "smtpUrl" | "mailFrom" | "mailTo" | "webhookUrl" | "webhookSecret">;

/** Creates the operator's channels: mail and webhook as configured, or the outbox in the data folder. Throws `StartRefused`. */
function notifiersOf(config: NotifierConfig, log: Log): readonly Notifier[] {
  const chosen = [...mail(config), ...webhook(config)];
  return chosen.length > 0 ? chosen : [createOutboxNotifier({ dir: pathsIn(config.dataDir).outbox, log })];
}

/** Returns what creates a mail channel to an address on the operator's mail server, for webhooks; null if no mail server is set. */
function mailToOf({ smtpUrl: url, mailFrom: from }: NotifierConfig): MailTo {
  if (url === null || from === null) return null;
  return (address) => createSmtpNotifier({ url, from, to: [address] });
}

function mail({ smtpUrl: url, mailFrom: from, mailTo: to }: NotifierConfig): Notifier[] {
  if (url === null) return [];
  if (!["smtp:", "smtps:"].includes(URL.parse(url)?.protocol ?? ""))
    throw new StartRefused("BERTH_SMTP_URL must begin with smtp:// or smtps://.");
  if (from === null || to.length === 0)
    throw new StartRefused("BERTH_SMTP_URL needs BERTH_MAIL_FROM and BERTH_MAIL_TO beside it.");
  return [createSmtpNotifier({ url, from, to })];
}

function webhook({ webhookUrl: url, webhookSecret: secret }: NotifierConfig): Notifier[] {
  if (url === null) return [];
  if (!["http:", "https:"].includes(URL.parse(url)?.protocol ?? ""))
    throw new StartRefused("BERTH_WEBHOOK_URL must begin with http:// or https://.");
  if (secret === null) throw new StartRefused("BERTH_WEBHOOK_URL needs BERTH_WEBHOOK_SECRET beside it.");
  return [createWebhookNotifier({ url, secret })];
}
