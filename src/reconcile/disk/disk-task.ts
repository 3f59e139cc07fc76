import * as disk from "../../features/disk/disk.ts";
import type { StorageOwner } from "../../ports/runtime.ts";
import type { Task, Platform } from "../platform.ts";
import { sourceAndImagesBytes } from "../images-bytes.ts";
import { recordEvent } from "../../features/activity/activity.ts";
import type { DiskSpace } from "../../ports/data-disk.ts";

const periodMs = 2000;
const measuringBudgetMs = 10_000;
// A container engine is asked less often than the file system.
const builderEvery = 15;
// If this much was written since the last check, every project is measured again to find the one that wrote it.
const muchWrittenBytes = 128 * 1024 ** 2;

/** Enforces disk limits: makes storage and databases over theirs read-only, and writable again; maintains the disk reserve. */
export function diskTask(platform: Platform): Task {
  const { log, ports, db, wakeups } = platform;
  const access = createAccessControl(platform);
  let measuring: Promise<void> | undefined;
  let mostAvailable = 0;
  let rounds = 0;
  let isBuilderShort = false;
  return {
    name: "disk",
    periodMs,
    topics: [],
    async run(signal) {
      if ((await ports.dataDisk.keepReserve()) === "freed")
        log.error({}, "the disk is almost full: the platform deleted its reserve file to free space");
      const space = await ports.dataDisk.observe();
      if (space.available_bytes < mostAvailable - muchWrittenBytes) {
        mostAvailable = space.available_bytes;
        await disk.measureAllSoon(db);
      }
      mostAvailable = Math.max(mostAvailable, space.available_bytes);
      if (space.is_low) await wakeups.send(db, "branches", "");
      measuring ??= measureDue(platform, signal)
        .catch((error: unknown) => log.error({ err: error }, "could not measure how much disk the projects use"))
        .finally(() => (measuring = undefined));
      const limited = await access.decide(space);
      // Builds are refused for either disk, so the status must show both.
      if (rounds % builderEvery === 0) isBuilderShort = await ports.builder.isShortOfSpace().catch(() => false);
      rounds += 1;
      const short = [
        ...(space.is_short ? ["the disk is short of space"] : []),
        ...(isBuilderShort ? ["the container engine's disk is short of space, so builds are refused"] : []),
      ];
      return { detail: [`${limited} projects may not write`, ...short].join("; ") };
    },
    async settle() {
      await measuring;
      await access.settle();
    },
  };
}

/** Sets the quota of a storage folder and resolves to its use in bytes; null if quotas don't work, so that the caller must measure the folder. */
async function limitStorage({ ports, log }: Platform, project: StorageOwner, bytes: number): Promise<number | null> {
  return ports.runtime.limitStorage(project, bytes).catch((error: unknown) => {
    log.warn({ err: error, project: project.project_id }, "could not set the quota of a storage folder");
    return null;
  });
}

/** Measures one project at a time, because a folder may hold a million files. */
async function measureDue(platform: Platform, signal: AbortSignal): Promise<void> {
  const { db, ports, settings, log } = platform;
  const begunAtMs = performance.now();
  while (!signal.aborted && performance.now() - begunAtMs < measuringBudgetMs) {
    const due = await disk.takeDueProject(db);
    if (due === undefined) return;
    const startedAtMs = performance.now();
    const { limits } = await disk.diskUseOf(db, due, settings.disk);
    // A missing folder is not an empty one: its row keeps saying that it held files.
    const isLost = due.has_stored_files && !(await ports.runtime.hasStorage(due));
    const storage_bytes = isLost
      ? null
      : ((await limitStorage(platform, due, limits.storage_bytes)) ?? (await ports.runtime.storageBytes(due)));
    const built_bytes = await sourceAndImagesBytes(ports, due.project_id);
    const images_bytes = built_bytes === null ? null : built_bytes + (await ports.runtime.changedBytes(due.project_id));
    const tookMs = performance.now() - startedAtMs;
    if (storage_bytes === null && !isLost)
      log.warn({ project: due.project_id }, "a storage folder takes too long to measure");
    await disk.saveMeasured(db, due.project_id, { storage_bytes, images_bytes, limits: settings.disk, tookMs });
  }
}

type Access = ReturnType<typeof nextAccess>;

/** Decides which projects may write to the disk, and applies the decisions. */
function createAccessControl(platform: Platform) {
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
      const average = space.is_short ? await disk.averageUse(db) : null;
      let limited = 0;
      for (const project of await disk.undecidedProjects(db, settings.disk, space.is_short)) {
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
  project: disk.Undecided,
  average: { readonly storage: number; readonly database: number } | null,
  now: Date,
) {
  const { storage_bytes, storage_access, database_bytes: bytes, compacting } = project;
  const within = (limit: number, kind: "storage" | "database") =>
    average === null ? limit : disk.limitInShortage(limit, average[kind]);
  const limitBytes = within(project.database_limit, "database");
  return {
    storage: disk.nextStorageAccess(storage_bytes, within(project.storage_limit, "storage"), storage_access),
    database: disk.nextDatabaseState({ bytes, limitBytes, compacting }, project, now),
  };
}

async function applyAccess({ db, wakeups, log }: Platform, project: disk.Undecided, next: Access): Promise<void> {
  const { org_id, project_id, slug: target } = project;
  const changes = [
    { kind: "storage", from: project.storage_access, to: next.storage, bytes: project.storage_bytes },
    { kind: "database", from: project.access, to: next.database.access, bytes: project.database_bytes },
  ].filter(({ from, to }) => from !== to);
  if (changes.length === 0) return;
  await db.transaction().execute(async (tx) => {
    await disk.saveAccess(tx, project_id, next);
    for (const { kind, to, bytes } of changes)
      await recordEvent(tx, { org_id, project_id, target, action: `disk.${kind}_${to}`, detail: { bytes } });
    await wakeups.send(tx, "databases", project_id);
  });
  log.warn({ project: target, changes }, "a project's write access to the disk changed");
}

/** Running replicas keep the access with which they started, so stop them; the apps task starts them again with the new one. */
async function restartServing({ db, ports, settings, wakeups }: Platform, projectId: string): Promise<void> {
  const deployment = await disk.servingDeployment(db, projectId);
  if (deployment === undefined) return;
  await ports.runtime.stop(deployment, settings.stopGraceMs);
  await wakeups.send(db, "apps", projectId);
}
