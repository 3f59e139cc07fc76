import { sql } from "kysely";
import type { ControlPlane } from "../features/control-planes/control-planes.ts";
import type { GitServers } from "../git/git-servers.ts";
import type { ReadyCheck } from "../http/health.ts";
import { diskFault } from "../kit/disk-fault.ts";
import { shareRuns } from "../kit/share-runs.ts";
import { approvalsTask } from "../reconcile/approvals/approvals-task.ts";
import { appsTask } from "../reconcile/apps/apps-task.ts";
import { archivesTask } from "../reconcile/archives/archives-task.ts";
import { backupsTask } from "../reconcile/backups/backups-task.ts";
import { branchesTask } from "../reconcile/branches/branches-task.ts";
import { buildsTask } from "../reconcile/builds/builds-task.ts";
import { certificatesTask } from "../reconcile/certificates/certificates-task.ts";
import { cronTask } from "../reconcile/cron/cron-task.ts";
import { databasesTask } from "../reconcile/databases/databases-task.ts";
import { tunnelsTask } from "../reconcile/databases/tunnels-task.ts";
import { diskTask } from "../reconcile/disk/disk-task.ts";
import { domainsTask } from "../reconcile/domains/domains-task.ts";
import { createDriver, type Driver } from "../reconcile/driver.ts";
import type { Task, Platform } from "../reconcile/platform.ts";
import { edgeTask } from "../reconcile/edge/edge-task.ts";
import { commitStatusesTask } from "../reconcile/follow/commit-statuses-task.ts";
import { previewCommentsTask } from "../reconcile/follow/preview-comments-task.ts";
import { followTask } from "../reconcile/follow/follow-task.ts";
import { followedPreviewsTask } from "../reconcile/follow/previews-task.ts";
import { httpsNamesTask } from "../reconcile/https-names/https-names-task.ts";
import { imagesTask } from "../reconcile/images/images-task.ts";
import { logsTask } from "../reconcile/logs/logs-task.ts";
import { metricsTask } from "../reconcile/metrics/metrics-task.ts";
import { missingParts } from "../reconcile/missing-parts.ts";
import { monitorsTask } from "../reconcile/monitors/monitors-task.ts";
import type { Probes } from "../reconcile/monitors/part-checks.ts";
import { notificationsTask } from "../reconcile/notifications/notifications-task.ts";
import { pageProbesTask } from "../reconcile/page-probes/page-probes-task.ts";
import { platformBackupsTask } from "../reconcile/platform-backups/platform-backups-task.ts";
import { presenceTask } from "../reconcile/presence/presence-task.ts";
import { provenTimeTask } from "../reconcile/proven-time/proven-time-task.ts";
import { purgesTask } from "../reconcile/purges/purges-task.ts";
import { releasesTask } from "../reconcile/releases/releases-task.ts";
import { repositoriesTask } from "../reconcile/repositories/repositories-task.ts";
import { retentionTask } from "../reconcile/retention/retention-task.ts";
import { runsTask } from "../reconcile/runs/runs-task.ts";
import { sleepTask } from "../reconcile/sleep/sleep-task.ts";
import { webhooksTask } from "../reconcile/webhooks/webhooks-task.ts";
import type { Role } from "./roles.ts";

export interface ReconcilerParts {
  readonly roles: readonly Role[];
  readonly git: Probes["git"];
  readonly self: () => ControlPlane;
}

export function createReconcilers(platform: Platform, { roles, git, self }: ReconcilerParts): Driver {
  const wake: Wake = (name) => driver.wake(name);
  const has = (role: Role) => roles.includes(role);
  const driver: Driver = createDriver({
    tasks: [
      presenceTask(platform, self),
      ...(has("git") ? tasksOfPrimary(platform, wake) : []),
      ...(has("edge")
        ? [edgeTask(platform), pageProbesTask(platform), sleepTask(platform)]
        : [httpsNamesTask(platform)]),
      ...(has("git") || has("edge") ? [metricsTask(platform)] : []),
      ...(has("reconcile") ? sharedTasks(platform, wake) : []),
      monitorsTask(platform, { roles, tasks: () => driver.status(), git }),
    ],
    wakeups: platform.wakeups,
    log: platform.log,
  });
  platform.ports.runtime.onChange(() => wake("apps"));
  return driver;
}

type Wake = (name: string) => void;

/** Returns the tasks that work on the primary's disk and on what runs on its machine. */
function tasksOfPrimary(platform: Platform, wake: Wake): readonly Task[] {
  return [
    diskTask(platform),
    databasesTask(platform),
    tunnelsTask(platform),
    appsTask(platform, () => wake("apps")),
    releasesTask(platform, () => wake("releases")),
    buildsTask(platform, () => wake("builds")),
    runsTask(platform, () => wake("runs")),
    backupsTask(platform, () => wake("backups")),
    archivesTask(platform),
    branchesTask(platform, () => wake("branches")),
    platformBackupsTask(platform, () => wake("platform-backups")),
    logsTask(platform),
    imagesTask(platform),
    provenTimeTask(platform),
    retentionTask(platform),
    repositoriesTask(platform),
    purgesTask(platform, () => wake("purges")),
    followTask(platform, () => wake("follow")),
    followedPreviewsTask(platform, () => wake("followed-previews")),
  ];
}

/** Returns the tasks that need only rows and the network. Any number of processes share them, by leases and locked rows. */
function sharedTasks(platform: Platform, wake: Wake): readonly Task[] {
  return [
    domainsTask(platform),
    certificatesTask(platform, () => wake("certificates")),
    cronTask(platform),
    approvalsTask(platform),
    notificationsTask(platform, () => wake("notifications")),
    commitStatusesTask(platform),
    previewCommentsTask(platform),
    webhooksTask(platform, () => wake("webhooks")),
  ];
}

/** Returns the checks of `/readyz`: the database, the disk and the reconcilers; git and the edge if this process has those roles. */
export function readinessChecks(
  platform: Platform,
  reconcilers: Driver,
  { roles, git }: { readonly roles: readonly Role[]; readonly git: Pick<GitServers, "port" | "problem"> | null },
): readonly ReadyCheck[] {
  const findMissing = shareRuns(() => missingParts(platform, { withBackups: false }));
  const checks: readonly ReadyCheck[] = [
    {
      name: "database",
      async check() {
        await sql`select 1`.execute(platform.db);
        return platform.wakeups.isListening() ? null : "The database's notifications do not arrive.";
      },
    },
    {
      name: "disk",
      async check() {
        const error = await platform.ports.dataDisk.probeWrite().catch((reason: unknown) => reason);
        if (error === undefined) return null;
        return diskFault(error) === "full" ? "The data folder's disk is full." : "The data folder cannot be written.";
      },
    },
    {
      name: "data_folder",
      async check() {
        const missing = (await findMissing()).filter(({ status }) => status === "fail");
        const [first] = missing;
        return first === undefined ? null : `${missing.length} missing: ${first.detail} /v1/status lists all of them.`;
      },
    },
    {
      name: "git",
      check: async () => ((git?.port ?? 0) > 0 ? null : (git?.problem ?? "git over SSH is not open yet.")),
    },
    {
      name: "edge",
      async check() {
        const status = await platform.ports.edge.observe();
        return status.running ? null : "The edge does not run.";
      },
    },
    {
      name: "reconcilers",
      async check() {
        const tasks = reconcilers.status();
        const waiting = tasks.filter((task) => task.last_ok_at === null).map((task) => task.name);
        const failing = tasks.filter((task) => task.failing).map((task) => task.name);
        if (failing.length > 0) return `Failing: ${failing.join(", ")}.`;
        return waiting.length > 0 ? `Tasks that have not run yet: ${waiting.join(", ")}.` : null;
      },
    },
  ];
  const roleOf: Readonly<Record<string, Role>> = { git: "git", edge: "edge", data_folder: "git" };
  return checks.filter(({ name }) => roleOf[name] === undefined || roles.includes(roleOf[name]));
}
