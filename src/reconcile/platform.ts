import type { HttpsNames } from "../features/certificates/certificates.ts";
import type { DomainSettings } from "../features/domains/domains.ts";
import type { HistoryRetention } from "../features/activity/activity.ts";
import type { DiskLimits } from "../features/disk/disk.ts";
import type { Terminals } from "../features/runs/runs.ts";
import type { MetricRetention } from "../features/metrics/metrics.ts";
import type { LossLimits } from "../features/rehearsals/rehearsals.ts";
import type { PreviewSettings } from "../features/previews/previews.ts";
import type { Log } from "../kit/log.ts";
import type { Builder, BuildLimits } from "../ports/builder.ts";
import type { CertificateIssuer } from "../ports/certificate-issuer.ts";
import type { Clock } from "../ports/clock.ts";
import type { DataDisk } from "../ports/data-disk.ts";
import type { Dns } from "../ports/dns.ts";
import type { DnsProvider } from "../ports/dns-provider.ts";
import type { Edge } from "../ports/edge.ts";
import type { LogStore } from "../ports/log-store.ts";
import type { MailTo, Notifier } from "../ports/notifier.ts";
import type { OutgoingHttp } from "../ports/outgoing-http.ts";
import type { PostgresHost } from "../ports/postgres-host.ts";
import type { PlatformArchive } from "../ports/platform-archive.ts";
import type { Repositories, TreeLimits } from "../ports/repositories.ts";
import type { Runtime, WorkloadLimits } from "../ports/runtime.ts";
import type { TenantDatabase } from "../ports/tenant-database.ts";
import type { DayHours } from "../kit/day-hours.ts";
import type { BackupWindow, FinalRetention, Retention } from "../features/backups/backups.ts";
import type { Storages } from "../ports/storage.ts";
import type { Db } from "../store/database.ts";
import type { Vault } from "../store/vault.ts";
import type { Topic, Wakeups } from "../store/wakeups.ts";
import type { CertificateSettings } from "./certificates/settings.ts";
import type { IngestOutput } from "./logs/output-source.ts";

/** What the reconcilers work with: Berth's rows on one side, the ports on the other. */
export interface Platform {
  readonly db: Db;
  readonly vault: Vault;
  readonly wakeups: Wakeups;
  readonly clock: Clock;
  readonly log: Log;
  /** Identifies this control plane, see `formatIdentity`; stored in the leases it claims. */
  readonly owner: string;
  /** Identifies this machine and data folder; stored in the rows of what runs here. */
  readonly machine: string;
  readonly ports: {
    readonly runtime: Runtime;
    readonly builder: Builder;
    readonly dataDisk: DataDisk;
    readonly edge: Edge;
    /** Null: no certificate authority is configured. */
    readonly certificateIssuer: CertificateIssuer | null;
    /** Null: wildcard certificates can't be obtained, because they need DNS records. */
    readonly dnsProvider: DnsProvider | null;
    readonly postgresHost: PostgresHost;
    readonly repositories: Repositories;
    readonly platformArchive: PlatformArchive;
    readonly logStore: LogStore;
    readonly storages: Storages;
    readonly tenantDatabase: TenantDatabase;
    readonly dns: Dns;
    readonly notifiers: readonly Notifier[];
    readonly mailTo: MailTo;
    readonly outgoingHttp: OutgoingHttp;
  };
  readonly ingestOutput: IngestOutput;
  readonly terminals: Terminals;
  readonly settings: ReconcileSettings;
  readonly domains: DomainSettings;
  readonly certificates: CertificateSettings;
  readonly httpsNames: HttpsNames;
  /** Returns the URL of a hostname, such as `http://demo.localhost:8080`. */
  readonly appUrl: (hostname: string) => string;
  /** The domain below which applications have their hostnames. */
  readonly appsDomain: string;
  /** Returns the control plane's URL without a trailing slash, such as `http://localhost:4000`. */
  readonly controlUrl: () => string;
}

export interface ReconcileSettings {
  readonly buildLimits: BuildLimits;
  /** Registries in private networks that builds may reach, as `host[:port]`. */
  readonly privateRegistries: readonly string[];
  /** Private networks that organizations' webhooks and followed repositories may reach. */
  readonly outgoingNetworks: readonly string[];
  readonly concurrentBuilds: number;
  readonly concurrentReleases: number;
  readonly workloadLimits: WorkloadLimits;
  readonly health: HealthSettings;
  /** How long a process without requests must run to count as healthy. */
  readonly steadyMs: number;
  readonly backups: BackupSettings;
  readonly branches: BranchSettings;
  readonly releaseTimeoutMs: number;
  /** How long a traffic switch waits for the edges to confirm. */
  readonly edgeConfirmMs: number;
  /** When databases are restarted whose PostgreSQL an update has replaced; null: never. */
  readonly restartHours: DayHours | null;
  readonly drainMs: number;
  readonly stopGraceMs: number;
  readonly cron: CronSettings;
  readonly follow: FollowSettings;
  readonly monitors: MonitorSettings;
  readonly metrics: MetricsSettings;
  /** Days after its deletion until a project is purged; 0: never automatically. */
  readonly purgeDays: number;
  readonly previews: PreviewSettings;
  /** How many lines of a replica the log accepts; beyond it, the oldest unread lines are dropped and counted. */
  readonly logLines: { readonly burst: number; readonly perSecond: number };
  /** How much disk space a project may use unless it has limits of its own. */
  readonly disk: DiskLimits;
  readonly history: HistoryRetention;
  readonly rehearsalLosses: LossLimits;
}

export interface MetricsSettings {
  readonly retention: MetricRetention;
  /** `everySeconds` 0 disables page probes. */
  readonly pageLooks: { readonly everySeconds: number; readonly timeoutMs: number };
}

export interface CronSettings {
  /** How long one call may take. */
  readonly timeoutMs: number;
  /** How long a due run waits for a ready replica. */
  readonly readyWaitMs: number;
  /** Maximum concurrent calls of one control plane. */
  readonly concurrent: number;
  readonly concurrentPerProject: number;
  /** About how many runs of a job are kept. */
  readonly runsKept: number;
}

export interface FollowSettings {
  /** How often a followed branch is checked without a delivery. */
  readonly pollMs: number;
  readonly packBytes: number;
  readonly treeLimits: TreeLimits;
}

export interface BackupSettings {
  /** When every database is backed up once a day; null: never. */
  readonly window: BackupWindow | null;
  readonly retention: Retention;
  readonly finalRetention: FinalRetention;
  /** For how many days any moment of a database can be restored; 0: databases have only their backups. */
  readonly archiveDays: number;
  /** How often the log of databases is stored. */
  readonly archiveEveryMs: number;
  readonly concurrent: number;
  /** How long one backup, restore or verification may take. */
  readonly timeoutMs: number;
}

export interface BranchSettings {
  readonly minutes: number;
  readonly perPlatform: number;
  /** The largest database that is copied byte by byte. */
  readonly copyBytes: number;
  /** How long a mask may run. */
  readonly maskMs: number;
}

export interface MonitorSettings {
  readonly everyMs: number;
  /** If an alert recurs sooner than this after it was resolved, it is announced only after this time. */
  readonly coolDownMs: number;
  readonly machine: string;
  readonly version: string;
  readonly dataDir: string;
  /** Paths in the data folder, by the kind of data in them. */
  readonly folders: Readonly<Record<string, string>>;
  readonly disk: { readonly warnPercent: number; readonly failPercent: number };
  readonly memory: { readonly warnPercent: number; readonly failPercent: number };
  /** The load per processor above which to warn. */
  readonly loadWarn: number;
  /** Maximum age of a database's newest backup. */
  readonly backupAgeMs: number;
}

export interface HealthSettings {
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly budgetMs: number;
}

/** A reconciler: brings the actual state in line with the rows. It takes no input, may run at any time, throws only platform faults. */
export interface Task {
  readonly name: string;
  /** It runs at least this often, even without a wake-up. */
  readonly periodMs: number;
  readonly topics: readonly Topic[];
  run(signal: AbortSignal): Promise<TaskReport>;
  /** Waits for work that `run` left in progress. */
  settle?(): Promise<void>;
}

export interface TaskReport {
  /** One line for the operator. */
  readonly detail: string;
  /** Run again after this long, if that is sooner than the period. */
  readonly againMs?: number | undefined;
}
