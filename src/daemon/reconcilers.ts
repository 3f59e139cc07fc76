import { createDriver, type Driver } from "../reconcile/driver.ts";
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
import type { Platform } from "../reconcile/platform.ts";

/** All tasks of the reconcile role, ready to start. */
export function createReconcilers(
  platform: Platform,
  git: () => { readonly host: string; readonly port: number } | null,
): Driver {
  const wake = (name: string) => driver.wake(name);
  const driver: Driver = createDriver({
    tasks: [
      diskTask(platform),
      databasesTask(platform),
      tunnelsTask(platform),
      appsTask(platform, () => wake("apps")),
      edgeTask(platform),
      domainsTask(platform),
      certificatesTask(platform, () => wake("certificates")),
      releasesTask(platform, () => wake("releases")),
      buildsTask(platform, () => wake("builds")),
      runsTask(platform, () => wake("runs")),
      backupsTask(platform, () => wake("backups")),
      logsTask(platform),
      metricsTask(platform),
      pageProbesTask(platform),
      imagesTask(platform),
      retentionTask(platform),
      cronTask(platform),
      repositoriesTask(platform),
      purgesTask(platform, () => wake("purges")),
      approvalsTask(platform),
      notificationsTask(platform, () => wake("notifications")),
      followTask(platform, () => wake("follow")),
      commitStatusesTask(platform),
      webhooksTask(platform, () => wake("webhooks")),
      monitorsTask(platform, { tasks: () => driver.status(), git }),
    ],
    wakeups: platform.wakeups,
    log: platform.log,
  });
  platform.ports.runtime.onChange(() => wake("apps"));
  return driver;
}
