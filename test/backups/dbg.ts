import { archivesTask } from "../../src/reconcile/archives/archives-task.ts";
import { startBackupPlatform } from "../support/backups.ts";
const running = await startBackupPlatform();
for (let i = 0; i < 20; i++) await running.project();
const platform = {
  ...running.platform,
  settings: { ...running.platform.settings, backups: { ...running.platform.settings.backups, archiveEveryMs: 5000 } },
};
const cpu = async (what: string) => {
  const c = process.cpuUsage();
  await new Promise((r) => setTimeout(r, 30000));
  const d = process.cpuUsage(c);
  console.log(what, ((d.user + d.system) / 30e4).toFixed(2), "% of a core, rss", process.memoryUsage().rss / 1e6);
};
await new Promise((r) => setTimeout(r, 40000));
await cpu("off");
await running.startTask(() => archivesTask(platform));
for (;;) {
  await new Promise((r) => setTimeout(r, 2000));
  const n = await running.platform.db
    .selectFrom("archive_copy")
    .select("id")
    .where("status", "=", "completed")
    .execute();
  if (n.length === 20) break;
}
await new Promise((r) => setTimeout(r, 15000));
await cpu("on");
await cpu("on");
await running.close();
process.exit(0);
