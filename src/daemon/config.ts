import { isIP } from "node:net";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { buildSettings } from "./build-settings.ts";
import { backupSettings } from "./backup-settings.ts";
import { diskSettings } from "./disk-settings.ts";
import { isNetwork } from "../kit/reachable-addresses.ts";
import { edgeSettings } from "./edge-settings.ts";
import { httpsSettings } from "./https-settings.ts";
import { faultOfDnsServer } from "./dns-servers.ts";
import { pgSettings } from "./pg-settings.ts";
import { roleSettings } from "./role-settings.ts";
import { runtimeSettings } from "./runtime-settings.ts";
import { choice, flag, list, optionalText, text, wholeNumber, type Setting } from "./settings.ts";
import { toolEnvironment } from "./tool-environment.ts";

const mib = 1024 * 1024;
const port = [0, 65_535] as const;

/** Every setting, in the order of the documentation. All are environment variables. */
export const settings = {
  dataDir: text("BERTH_DATA", "~/.berth", "The data folder: everything that Berth stores is in it."),
  listen: text("BERTH_LISTEN", "127.0.0.1", "The address that all three ports listen on."),
  httpPort: wholeNumber("BERTH_HTTP_PORT", 4000, port, "Control plane: the API and git over HTTP."),
  edgePort: wholeNumber("BERTH_EDGE_PORT", 8080, port, "Traffic to applications."),
  ...edgeSettings,
  sshPort: wholeNumber("BERTH_SSH_PORT", 2222, port, "git over SSH."),
  domain: text("BERTH_DOMAIN", "localhost", "The domain under which every application gets a hostname."),
  host: text("BERTH_HOST", "localhost", "The name under which users reach the control plane and git."),
  hosts: list(
    "BERTH_HOSTS",
    (value) => (/^[a-z0-9.-]+$/i.test(value) ? undefined : "is not a host name"),
    "Further host names of the control plane, besides `BERTH_HOST`, the machine's name, `localhost` and IP addresses.",
  ),
  publicAddresses: list(
    "BERTH_PUBLIC_ADDRESSES",
    (value) => (isIP(value) > 0 ? undefined : "is not an IP address"),
    "The IP addresses that the DNS records of users' hostnames must have; default: those of BERTH_LISTEN, which other machines cannot reach while it is 127.0.0.1.",
  ),
  dnsServers: list(
    "BERTH_DNS_SERVERS",
    faultOfDnsServer,
    "The DNS servers that users' hostnames are looked up with, such as `192.0.2.1` or `192.0.2.1:5353`; default: the machine's own DNS servers.",
  ),
  domainGraceHours: wholeNumber(
    "BERTH_DOMAIN_GRACE_HOURS",
    72,
    [0, 8760],
    "How long Berth keeps serving a user's hostname after its DNS records stopped pointing here.",
  ),
  example: flag("BERTH_EXAMPLE", true, "Deploy an example application on the first start."),
  ...httpsSettings,
  onStop: choice(
    "BERTH_ON_STOP",
    ["stop", "keep"],
    "What happens to applications, edge and databases when the control plane stops: they stop too, or keep running.",
  ),
  install: flag(
    "BERTH_INSTALL",
    true,
    "Install missing parts of the machine (PostgreSQL, bubblewrap …) when that is possible.",
  ),
  ...pgSettings,
  ...roleSettings,
  smtpUrl: optionalText(
    "BERTH_SMTP_URL",
    "The mail server for messages to the operator and for organizations' e-mail webhooks, such as `smtp://user:password@mail.example.com:587`; `smtps:` uses TLS from the start.",
  ),
  mailFrom: optionalText("BERTH_MAIL_FROM", "The sender of mails to the operator."),
  mailTo: list(
    "BERTH_MAIL_TO",
    (value) => (/^[^\s@]+@[^\s@]+$/.test(value) ? undefined : "is not an e-mail address"),
    "The recipients of mails to the operator. Everyone who gets these mails can approve requests.",
  ),
  webhookUrl: optionalText(
    "BERTH_WEBHOOK_URL",
    "The URL that receives messages to the operator as signed POST requests.",
  ),
  webhookSecret: optionalText("BERTH_WEBHOOK_SECRET", "The key that signs the requests to BERTH_WEBHOOK_URL."),
  outgoingNetworks: list(
    "BERTH_OUTGOING_NETWORKS",
    (value) => (isNetwork(value) ? undefined : "is not a network such as `10.0.0.0/8`"),
    "Private networks, or addresses of this machine, that organizations' webhooks and followed repositories may reach although they are not public.",
  ),
  tenantNetworks: list(
    "BERTH_TENANT_NETWORKS",
    (value) => (isNetwork(value) ? undefined : "is not a network such as `10.0.0.0/8`"),
    "Private networks that builds, applications and one-off runs may reach. All others are closed to them, except for name servers, the package servers of the operator's npm, pip and Go settings, and BERTH_PG_URL.",
  ),
  followMinutes: wholeNumber(
    "BERTH_FOLLOW_MINUTES",
    10,
    [1, 1440],
    "How often Berth checks a followed branch for new commits when no webhook reports a push.",
  ),
  readsPerMinute: wholeNumber("BERTH_READS_PER_MINUTE", 600, [1, 1_000_000], "Read requests per token and minute."),
  writesPerMinute: wholeNumber("BERTH_WRITES_PER_MINUTE", 120, [1, 1_000_000], "Write requests per token and minute."),
  bodyKib: wholeNumber(
    "BERTH_BODY_KIB",
    256,
    [16, 65_536],
    "The largest body of a request to the API; one that writes rows may have 1 MiB in any case.",
  ),
  headerSeconds: wholeNumber(
    "BERTH_HEADER_SECONDS",
    15,
    [1, 600],
    "How long the head of a request may take to arrive.",
  ),
  requestSeconds: wholeNumber(
    "BERTH_REQUEST_SECONDS",
    30,
    [1, 3600],
    "How long the body of a request to the API may take to arrive.",
  ),
  packMib: wholeNumber("BERTH_PACK_MIB", 256, [1, 1024], "The largest pack that git may push."),
  treeEntries: wholeNumber("BERTH_TREE_ENTRIES", 200_000, [100, 5_000_000], "Files in the tree of a pushed commit."),
  treeMib: wholeNumber("BERTH_TREE_MIB", 1024, [1, 65_536], "The size of all files of a pushed commit."),
  keyFile: optionalText(
    "BERTH_KEY_FILE",
    "The file with the key that encrypts secrets in the database; default: `secrets.key` in the data folder.",
  ),
  caFile: optionalText(
    "BERTH_CA_FILE",
    "Certificates that applications and builds trust besides the system's; default: `SSL_CERT_FILE`.",
  ),
  ...runtimeSettings,
  network: choice(
    "BERTH_NETWORK",
    ["auto", "veth", "pasta", "shared"],
    "How sandboxes are connected to the network: the best way that works on this machine, or a certain one.",
  ),
  allowUnisolated: flag(
    "BERTH_ALLOW_UNISOLATED",
    false,
    "Run code of all organizations even on a machine without namespaces, which cannot isolate it.",
  ),
  logFormat: choice("BERTH_LOG_FORMAT", ["text", "json"], "How the control plane logs to standard output."),
  logLevel: choice("BERTH_LOG_LEVEL", ["info", "debug", "warn", "error"], "The lowest level that is logged."),
  uidBase: wholeNumber(
    "BERTH_UID_BASE",
    20_000,
    [1000, 4_000_000],
    "As root, a project's processes run under this user id plus the project's number, and the edge under this one itself.",
  ),
  databaseUidBase: wholeNumber(
    "BERTH_DATABASE_UID_BASE",
    35_000,
    [1000, 4_000_000],
    "As root, a project's database runs under this user id plus the project's number; the control plane's own database runs under the number before it, and git under the one before that.",
  ),
  appPort: wholeNumber(
    "BERTH_APP_PORT",
    3000,
    [1024, 32_767],
    "The PORT that applications are given unless their project sets one.",
  ),
  appMemoryMib: wholeNumber("BERTH_APP_MEMORY_MIB", 512, [16, 1_048_576], "Memory of one replica."),
  appFolderMib: wholeNumber(
    "BERTH_APP_FOLDER_MIB",
    1024,
    [1, 1_048_576],
    "How much one replica may change in the application's folder; the changes are lost when the replica ends.",
  ),
  appProcesses: wholeNumber("BERTH_APP_PROCESSES", 256, [8, 100_000], "Processes and threads of one replica."),
  appCpus: wholeNumber("BERTH_APP_CPUS", 2, [1, 1024], "Processors of one replica."),
  databaseMemoryMib: wholeNumber(
    "BERTH_DATABASE_MEMORY_MIB",
    512,
    [64, 1_048_576],
    "Memory of one project's database, including the files that it keeps in memory.",
  ),
  databaseProcesses: wholeNumber(
    "BERTH_DATABASE_PROCESSES",
    100,
    [64, 100_000],
    "Processes of one project's database; each of its 30 connections is one.",
  ),
  databaseCpus: wholeNumber("BERTH_DATABASE_CPUS", 2, [1, 1024], "Processors of one project's database."),
  ...buildSettings,
  silenceSeconds: wholeNumber(
    "BERTH_SILENCE_SECONDS",
    300,
    [1, 86_400],
    "How long a release command may print nothing, and a build may neither print nor compute anything, before Berth ends it.",
  ),
  browserConnections: wholeNumber(
    "BERTH_BROWSER_CONNECTIONS",
    3,
    [1, 15],
    "Connections of the table browser to one project's database; they come out of the 20 that the application may use.",
  ),
  concurrentBuilds: wholeNumber("BERTH_CONCURRENT_BUILDS", 2, [1, 64], "Builds at the same time."),
  releaseSeconds: wholeNumber("BERTH_RELEASE_SECONDS", 600, [1, 86_400], "How long a release command may take."),
  healthBudgetSeconds: wholeNumber(
    "BERTH_HEALTH_BUDGET_SECONDS",
    60,
    [1, 3600],
    "How long new replicas may take to become healthy.",
  ),
  steadySeconds: wholeNumber(
    "BERTH_STEADY_SECONDS",
    3,
    [0, 600],
    "How long a new process without requests (`worker` and the like) must stay up to count as healthy.",
  ),
  healthTimeoutSeconds: wholeNumber("BERTH_HEALTH_TIMEOUT_SECONDS", 5, [1, 300], "How long one health check may take."),
  drainSeconds: wholeNumber(
    "BERTH_DRAIN_SECONDS",
    30,
    [0, 3600],
    "How long open requests to a replaced deployment may still run.",
  ),
  stopGraceSeconds: wholeNumber(
    "BERTH_STOP_GRACE_SECONDS",
    10,
    [0, 3600],
    "How long a process may take to exit after SIGTERM before Berth kills it.",
  ),
  cronTimeoutSeconds: wholeNumber(
    "BERTH_CRON_TIMEOUT_SECONDS",
    300,
    [1, 3600],
    "How long one call of a cron job may take.",
  ),
  concurrentCronCalls: wholeNumber(
    "BERTH_CONCURRENT_CRON_CALLS",
    1000,
    [1, 10_000],
    "Calls of cron jobs at the same time.",
  ),
  projectCronCalls: wholeNumber("BERTH_PROJECT_CRON_CALLS", 50, [1, 10_000], "Cron calls of one project at a time."),
  cronRunsKept: wholeNumber(
    "BERTH_CRON_RUNS_KEPT",
    1000,
    [1, 100_000],
    "How many runs of each cron job are kept, the newest first.",
  ),
  monitorSeconds: wholeNumber("BERTH_MONITOR_SECONDS", 15, [1, 60], "How often the platform runs its checks."),
  alertPauseMinutes: wholeNumber(
    "BERTH_ALERT_PAUSE_MINUTES",
    15,
    [0, 1440],
    "An alert that opens again within this time after it was resolved is not sent before the time is over.",
  ),
  ...diskSettings,
  memoryWarnPercent: wholeNumber(
    "BERTH_MEMORY_WARN_PERCENT",
    90,
    [1, 100],
    "The percentage of used memory from which a check warns.",
  ),
  memoryFullPercent: wholeNumber(
    "BERTH_MEMORY_FULL_PERCENT",
    97,
    [1, 100],
    "The percentage of used memory from which it counts as full.",
  ),
  loadWarn: wholeNumber("BERTH_LOAD_WARN", 4, [1, 1000], "The load per processor from which a check warns."),
  ...backupSettings,
  metricsDays: wholeNumber("BERTH_METRICS_DAYS", 8, [8, 3650], "How many days metrics are kept, by the hour."),
  purgeDays: wholeNumber(
    "BERTH_PURGE_DAYS",
    0,
    [0, 3650],
    "After how many days a deleted project is purged; a verified final backup is kept. 0: only on request.",
  ),
  pageLookSeconds: wholeNumber(
    "BERTH_PAGE_LOOK_SECONDS",
    60,
    [0, 86_400],
    "How often the platform requests each application's first page to measure its load time; 0: never.",
  ),
  logLinesPerSecond: wholeNumber(
    "BERTH_LOG_LINES_PER_SECOND",
    1000,
    [1, 1_000_000],
    "How many log lines of a replica are stored per second once its burst is used up; of more, the oldest unread ones are dropped and counted.",
  ),
  logLinesBurst: wholeNumber(
    "BERTH_LOG_LINES_BURST",
    20_000,
    [1, 1_000_000],
    "How many log lines a replica may write at once (its burst).",
  ),
} as const satisfies Record<string, Setting<unknown>>;

type Values = { readonly [K in keyof typeof settings]: (typeof settings)[K] extends Setting<infer T> ? T : never };

/** The validated configuration. */
export interface Config extends Values {
  readonly isRoot: boolean;
  /** The environment variables that package tools need to reach their registries. No other part of the environment is passed on. */
  readonly toolEnvironment: Readonly<Record<string, string>>;
}

/** The `BERTH_` variables as given, and PATH. */
export type GivenSettings = Readonly<Record<string, string>>;

/** Returns the settings in the environment, so that the systemd service starts with the same ones. */
export function givenSettings(environment: NodeJS.ProcessEnv = process.env): GivenSettings {
  const given = Object.entries(environment).filter(([name, value]) => value && /^(?:BERTH_\w+|PATH)$/.test(name));
  return Object.fromEntries(given) as GivenSettings;
}

/**
 * Reads the configuration; options override the environment. Throws an error with one sentence for each wrong setting. Other code takes its
 * settings from the result, never from the environment.
 */
export function readConfig(inherited = process.env, options: Readonly<Record<string, string>> = {}): Config {
  const environment = { ...inherited, ...options };
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, setting] of Object.entries(settings)) {
    try {
      values[key] = setting.read(emptyIsUnset(environment[setting.name]));
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  problems.push(...unknownSettings(environment));
  if (problems.length > 0) throw new Error(problems.join("\n"));
  const config = values as unknown as Values;
  return {
    ...config,
    dataDir: resolve(config.dataDir.replace(/^~(?=$|\/)/, environment["HOME"] ?? homedir())),
    caFile: config.caFile ?? emptyIsUnset(environment["SSL_CERT_FILE"]) ?? null,
    isRoot: process.getuid?.() === 0,
    toolEnvironment: toolEnvironment(environment),
  };
}

/** Returns the paths inside the data folder. */
export function pathsIn(dataDir: string) {
  return {
    adminToken: join(dataDir, "admin-token"),
    keyFile: join(dataDir, "secrets.key"),
    lock: join(dataDir, "berthd.lock"),
    ownPostgres: join(dataDir, "control-database"),
    databases: join(dataDir, "databases"),
    repositories: join(dataDir, "repositories"),
    git: join(dataDir, "git"),
    hostKey: join(dataDir, "ssh", "host_ed25519"),
    releases: join(dataDir, "releases"),
    builds: join(dataDir, "builds"),
    caches: join(dataDir, "caches"),
    compiledCode: join(dataDir, "compiled-code"),
    dashboard: join(dataDir, "dashboard"),
    storage: join(dataDir, "storage"),
    runtime: join(dataDir, "runtime"),
    containers: join(dataDir, "containers"),
    buildEngine: join(dataDir, "build-engine"),
    outbox: join(dataDir, "outbox"),
    sandbox: join(dataDir, "sandbox"),
    edge: join(dataDir, "edge"),
    haproxy: join(dataDir, "haproxy"),
    logs: join(dataDir, "logs"),
    backups: join(dataDir, "backups"),
  };
}

// Variables of the start scripts and the command line, which the daemon does not read.
const elsewhere = new Set(["BERTH_NODE", "BERTH_TOKEN", "BERTH_URL", "BERTH_PROJECT", "BERTH_TOOLCHAIN"]);

/** Returns an error for each unknown `BERTH_` variable: a misspelt setting would silently do nothing. */
function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  const known = new Set<string>(Object.values(settings).map((setting) => setting.name));
  return Object.keys(environment)
    .filter(
      (name) =>
        name.startsWith("BERTH_") && !name.startsWith("BERTH_TEST_") && !known.has(name) && !elsewhere.has(name),
    )
    .map((name) => `${name} is not a setting of Berth. Correct or remove it; docs/config.md lists all settings.`);
}

function emptyIsUnset(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

/** Converts a setting in MiB to bytes. */
export function mibToBytes(count: number): number {
  return count * mib;
}
