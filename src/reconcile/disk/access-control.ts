import { recordEvent } from "../../features/activity/activity.ts";
import {
  averageUse,
  limitInShortage,
  nextDatabaseState,
  nextStorageAccess,
  saveAccess,
  servingDeployment,
  undecidedProjects,
  type Undecided,
} from "../../features/disk/disk.ts";
import type { DiskSpace } from "../../ports/data-disk.ts";
import type { Platform } from "../platform.ts";

type Access = ReturnType<typeof nextAccess>;

/** Decides which projects may write to the disk, and applies the decisions. */
export function createAccessControl(platform: Platform) {
  const { db, settings, clock, log } = platform;
  const restarting = new Set<Promise<void>>();

  /** Not awaited: a stop lasts until the application's last request is done, and must not delay decisions about other projects. */
  function restart(projectId: string): void {
    const work = restartServing(platform, projectId)
      .catch((error: unknown) => log.error({ err: error, project: projectId }, "could not restart an application"))
      .finally(() => restarting.delete(work));
    restarting.add(work);
  }

  return {
    /** Resolves to the number of projects with restricted write access. */
    async decide(space: DiskSpace) {
      const average = space.is_short ? await averageUse(db) : null;
      let limited = 0;
      for (const project of await undecidedProjects(db, settings.disk, space.is_short)) {
        const next = nextAccess(project, average, clock.now());
        if (next.storage !== "open" || next.database.access !== "open") limited += 1;
        await applyAccess(platform, project, next);
        if (next.storage !== project.storage_access) restart(project.project_id);
      }
      return limited;
    },
    settle: async () => void (await Promise.all(restarting)),
  };
}

function nextAccess(
  project: Undecided,
  average: { readonly storage: number; readonly database: number } | null,
  now: Date,
) {
  const { storage_bytes, storage_access, database_bytes: bytes, compacting } = project;
  const within = (limit: number, kind: "storage" | "database") =>
    average === null ? limit : limitInShortage(limit, average[kind]);
  const limitBytes = within(project.database_limit, "database");
  return {
    storage: nextStorageAccess(storage_bytes, within(project.storage_limit, "storage"), storage_access),
    database: nextDatabaseState({ bytes, limitBytes, compacting }, project, now),
  };
}

async function applyAccess({ db, wakeups, log }: Platform, project: Undecided, next: Access): Promise<void> {
  const { org_id, project_id, slug: target } = project;
  const changes = [
    { kind: "storage", from: project.storage_access, to: next.storage, bytes: project.storage_bytes },
    { kind: "database", from: project.access, to: next.database.access, bytes: project.database_bytes },
  ].filter(({ from, to }) => from !== to);
  if (changes.length === 0) return;
  await db.transaction().execute(async (tx) => {
    await saveAccess(tx, project_id, next);
    for (const { kind, to, bytes } of changes)
      await recordEvent(tx, { org_id, project_id, target, action: `disk.${kind}_${to}`, detail: { bytes } });
    await wakeups.send(tx, "databases", project_id);
  });
  log.warn({ project: target, changes }, "a project's write access to the disk changed");
}

/** Running replicas keep the access with which they started, so stop them; the apps task starts them again with the new one. */
async function restartServing({ db, ports, settings, wakeups }: Platform, projectId: string): Promise<void> {
  const deployment = await servingDeployment(db, projectId);
  if (deployment === undefined) return;
  await ports.runtime.stop(deployment, settings.stopGraceMs);
  await wakeups.send(db, "apps", projectId);
}
