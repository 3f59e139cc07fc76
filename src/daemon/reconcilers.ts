import { createDriver, type Driver, type Task } from "../reconcile/driver.ts";
import { approvalsTask } from "../reconcile/approvals/approvals-task.ts";
import { appsTask } from "../reconcile/apps/apps-task.ts";
import { backupsTask } from "../reconcile/backups/backups-task.ts";
import { buildsTask } from "../reconcile/builds/builds-task.ts";
import { certificatesTask } from "../reconcile/certificates/certificates-task.ts";
import { cronTask } from "../reconcile/cron/cron-task.ts";
import { databasesTask } from "../reconcile/databases/databases-task.ts";
import { tunnelsTask } from "../reconcile/databases/tunnels-task.ts";
import { diskTask } from "../reconcile/disk/disk-task.ts";
import { domainsTask } from "../reconcile/domains/domains-task.ts";
import { edgeTask } from "../reconcile/edge/edge-task.ts";
import { commitStatusesTask } from "../reconcile/follow/commit-statuses-task.ts";
import { followTask } from "../reconcile/follow/follow-task.ts";
import { imagesTask } from "../reconcile/images/images-task.ts";
import { logsTask } from "../reconcile/logs/logs-task.ts";
import type { Probes } from "../reconcile/monitors/part-checks.ts";
import { monitorsTask } from "../reconcile/monitors/monitors-task.ts";
import { notificationsTask } from "../reconcile/notifications/notifications-task.ts";
import { metricsTask } from "../reconcile/metrics/metrics-task.ts";
import { pageProbesTask } from "../reconcile/page-probes/page-probes-task.ts";
import { purgesTask } from "../reconcile/purges/purges-task.ts";
import { releasesTask } from "../reconcile/releases/releases-task.ts";
import { runsTask } from "../reconcile/runs/runs-task.ts";
import { retentionTask } from "../reconcile/retention/retention-task.ts";
import { repositoriesTask } from "../reconcile/repositories/repositories-task.ts";
import { webhooksTask } from "../reconcile/webhooks/webhooks-task.ts";
import { httpsNamesTask } from "../reconcile/https-names/https-names-task.ts";
import { presenceTask } from "../reconcile/presence/presence-task.ts";
import type { ControlPlane } from "../features/control-planes/control-planes.ts";
import type { Platform } from "../reconcile/platform.ts";
import type { Role } from "./roles.ts";

export interface ReconcilerParts {
  readonly roles: readonly Role[];
  readonly git: Probes["git"];
  readonly self: () => ControlPlane;
}

/** Creates the tasks of a process with these roles. The caller starts them. */
export function createReconcilers(platform: Platform, { roles, git, self }: ReconcilerParts): Driver {
  const wake: Wake = (name) => driver.wake(name);
  const has = (role: Role) => roles.includes(role);
  const driver: Driver = createDriver({
    tasks: [
      presenceTask(platform, self),
      ...(has("git") ? tasksOfPrimary(platform, wake) : []),
      ...(has("edge") ? [edgeTask(platform), pageProbesTask(platform)] : [httpsNamesTask(platform)]),
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
    logsTask(platform),
    imagesTask(platform),
    retentionTask(platform),
    repositoriesTask(platform),
    purgesTask(platform, () => wake("purges")),
    followTask(platform, () => wake("follow")),
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
    webhooksTask(platform, () => wake("webhooks")),
  ];
}
