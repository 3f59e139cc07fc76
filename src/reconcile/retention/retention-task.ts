import {
  deleteOldChanges,
  deleteOldActivity,
  deleteOldBuilds,
  deleteOldDeployments,
} from "../../features/activity/activity.ts";
import { deleteExpiredNames } from "../../features/projects/projects.ts";
import { deleteOldRuns } from "../../features/runs/runs.ts";
import type { Task, Platform } from "../platform.ts";

const periodMs = 3_600_000;
const soonMs = 5000;

/** Deletes history older than the installation's retention, one batch of each kind at a time. */
export function retentionTask({ db, ports, settings }: Platform): Task {
  return {
    name: "retention",
    periodMs,
    topics: [],
    async run() {
      await deleteOldChanges(db);
      const names = await deleteExpiredNames(db);
      const rows = await deleteOldActivity(db, settings.history);
      const deployments = await deleteOldDeployments(db, settings.history);
      const builds = await deleteOldBuilds(db, settings.history);
      const runs = await deleteOldRuns(db, settings.history.days);
      await ports.logStore.removeBuilds([...builds, ...runs]);
      const deleted = names + rows + deployments + builds.length + runs.length;
      return { detail: `${deleted} old rows deleted`, ...(deleted > 0 ? { againMs: soonMs } : {}) };
    },
  };
}
