import { createDriver, type Driver } from "../reconcile/driver.ts";
import { approvalsTask } from "../reconcile/tasks/approvals.ts";
import { appsTask } from "../reconcile/tasks/apps.ts";
import { backupsTask } from "../reconcile/tasks/backups.ts";
import { buildsTask } from "../reconcile/tasks/builds.ts";
import { cronTask } from "../reconcile/tasks/cron.ts";
import { databasesTask } from "../reconcile/tasks/databases.ts";
import { domainsTask } from "../reconcile/tasks/domains.ts";
import { edgeTask } from "../reconcile/tasks/edge.ts";
import { imagesTask } from "../reconcile/tasks/images.ts";
import { logsTask } from "../reconcile/tasks/logs.ts";
import { monitorsTask } from "../reconcile/tasks/monitors.ts";
import { notificationsTask } from "../reconcile/tasks/notifications.ts";
import { metricsTask } from "../reconcile/tasks/metrics.ts";
import { pageLooksTask } from "../reconcile/tasks/page-looks.ts";
import { releasesTask } from "../reconcile/tasks/releases.ts";
import { repositoriesTask } from "../reconcile/tasks/repositories.ts";
import { storageSizesTask } from "../reconcile/tasks/storage-sizes.ts";
import type { Platform } from "../reconcile/platform.ts";

/** All tasks of the reconcile role, ready to start. */
export function createReconcilers(
  platform: Platform,
  git: () => { readonly host: string; readonly port: number } | null,
): Driver {
  const wake = (name: string) => driver.wake(name);
  const driver: Driver = createDriver({
    tasks: [
      databasesTask(platform),
      appsTask(platform),
      edgeTask(platform),
      domainsTask(platform),
      releasesTask(platform, () => wake("releases")),
      buildsTask(platform, () => wake("builds")),
      backupsTask(platform, () => wake("backups")),
      logsTask(platform),
      metricsTask(platform),
      pageLooksTask(platform),
      storageSizesTask(platform),
      imagesTask(platform),
      cronTask(platform),
      repositoriesTask(platform),
      approvalsTask(platform),
      notificationsTask(platform, () => wake("notifications")),
      monitorsTask(platform, { tasks: () => driver.status(), git }),
    ],
    wakeups: platform.wakeups,
    log: platform.log,
  });
  platform.ports.runtime.onChange(() => wake("apps"));
  return driver;
}
