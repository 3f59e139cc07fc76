import type { HttpsNames } from "../features/certificates/certificates.ts";
import type { DomainSettings } from "../features/domains/domains.ts";
import type { HistoryRetention } from "../features/activity/activity.ts";
import type { DiskLimits } from "../features/disk/disk.ts";
import type { Terminals } from "../features/runs/runs.ts";
import type { MetricRetention } from "../features/metrics/metrics.ts";
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
import type { Repositories, TreeLimits } from "../ports/repositories.ts";
import type { Runtime, WorkloadLimits } from "../ports/runtime.ts";
import type { TenantDatabase } from "../ports/tenant-database.ts";
import type { BackupWindow, Retention } from "../features/backups/backups.ts";
import type { Storages } from "../ports/storage.ts";
import type { Db } from "../store/database.ts";
import type { Vault } from "../store/vault.ts";
import type { Wakeups } from "../store/wakeups.ts";
import type { CertificateSettings } from "./certificates/settings.ts";
import type { IngestOutput } from "./logs/output-source.ts";

/** What the reconcilers work with: our rows on one side, the ports on the other. */
export interface Platform {
  readonly db: Db;
  readonly vault: Vault;
  readonly wakeups: Wakeups;
  readonly clock: Clock;
  readonly log: Log;
  /** This control plane, see `formatIdentity`; it stands in the leases it claims. */
  readonly owner: string;
  /** This machine and its data folder; it stands in the rows of what runs here. */
  readonly machine: string;
  readonly ports: {
    readonly runtime: Runtime;
    readonly builder: Builder;
    readonly dataDisk: DataDisk;
    readonly edge: Edge;
    /** Null: no authority is set. */
    readonly certificateIssuer: CertificateIssuer | null;
    /** Null: wildcard certificates cannot be proven. */
    readonly dnsProvider: DnsProvider | null;
    readonly postgresHost: PostgresHost;
    readonly repositories: Repositories;
    readonly logStore: LogStore;
    readonly storages: Storages;
    readonly tenantDatabase: TenantDatabase;
    readonly dns: Dns;
    readonly notifiers: readonly Notifier[];
    readonly mailTo: MailTo;
    readonly outgoingHttp: OutgoingHttp;
  };
  readonly ingestOutput: IngestOutput;
  /** Terminals that are open in this process. */
  readonly terminals: Terminals;
  readonly settings: ReconcileSettings;
  readonly domains: DomainSettings;
  readonly certificates: CertificateSettings;
  readonly httpsNames: HttpsNames;
  /** `http://demo.localhost:8080` for a hostname. */
  readonly appUrl: (hostname: string) => string;
  /** The control plane, `http://localhost:4000`, without a slash at the end. */
  readonly controlUrl: () => string;
}

export interface ReconcileSettings {
  readonly buildLimits: BuildLimits;
  /** Registries in private networks that builds may reach, as `host[:port]`. */
  readonly privateRegistries: readonly string[];
  readonly concurrentBuilds: number;
  readonly concurrentReleases: number;
  readonly workloadLimits: WorkloadLimits;
  readonly health: HealthSettings;
  /** How long a process without requests must stay up to count as healthy. */
  readonly steadyMs: number;
  readonly backups: BackupSettings;
  readonly releaseTimeoutMs: number;
  /** How long a switch waits for the edges. */
  readonly edgeConfirmMs: number;
  readonly drainMs: number;
  readonly stopGraceMs: number;
  /** The port that applications are asked to listen on when their project sets none. */
  readonly appPort: number;
  readonly cron: CronSettings;
  readonly follow: FollowSettings;
  readonly monitors: MonitorSettings;
  readonly metrics: MetricsSettings;
  /** How many days after its deletion a project is purged; 0: never by itself. */
  readonly purgeDays: number;
  /** How many lines the log takes of a replica; over it the oldest unread ones are dropped and counted. */
  readonly logLines: { readonly burst: number; readonly perSecond: number };
  /** What one project may take of the disk unless its own limits say otherwise. */
  readonly disk: DiskLimits;
  readonly history: HistoryRetention;
}

export interface MetricsSettings {
  readonly retention: MetricRetention;
  /** 0 switches them off. */
  readonly pageLooks: { readonly everySeconds: number; readonly timeoutMs: number };
}

export interface CronSettings {
  /** How long one call may take. */
  readonly timeoutMs: number;
  /** Calls at the same time of one control plane. */
  readonly concurrent: number;
  readonly concurrentPerProject: number;
  /** How many runs of a job are kept, about. */
  readonly runsKept: number;
}

export interface FollowSettings {
  /** How often a followed branch is looked at without a delivery. */
  readonly pollMs: number;
  readonly packBytes: number;
  readonly treeLimits: TreeLimits;
}

export interface BackupSettings {
  /** Whether every database is backed up once a day. */
  readonly daily: boolean;
  readonly window: BackupWindow;
  readonly retention: Retention;
  readonly concurrent: number;
  /** How long one backup, restore or verification may take. */
  readonly timeoutMs: number;
}

export interface MonitorSettings {
  readonly everyMs: number;
  /** An alert that comes back sooner than this after it was resolved is announced when the time is over. */
  readonly coolDownMs: number;
  /** What this machine is called in the status. */
  readonly machine: string;
  readonly version: string;
  readonly dataDir: string;
  /** Folders of the data folder by the kind of data in them. */
  readonly folders: Readonly<Record<string, string>>;
  readonly disk: { readonly warnPercent: number; readonly failPercent: number };
  readonly memory: { readonly warnPercent: number; readonly failPercent: number };
  /** The load per processor that is too much. */
  readonly loadWarn: number;
  /** How old a database's newest backup may be. */
  readonly backupAgeMs: number;
}

export interface HealthSettings {
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly budgetMs: number;
}
