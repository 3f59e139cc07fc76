import { newestSource, requestBuild } from "../../features/builds/builds.ts";
import {
  claimPruning,
  endPruning,
  missingImages,
  projectsWithImages,
  rebuilder,
  type ListedImages,
} from "../../features/images/images.ts";
import { lockProject } from "../../features/projects/projects.ts";
import { holdLease, releaseDeadLeases, renewLease } from "../../store/leases.ts";
import type { Task, Platform } from "../platform.ts";

interface Project {
  readonly id: string;
  readonly org_id: string;
}

/** Deletes images that neither serve nor belong to the last good deployments, and builds a missing serving one again. */
export function imagesTask(platform: Platform): Task {
  return {
    name: "images",
    periodMs: 600_000,
    topics: ["images"],
    async run(signal) {
      await releaseDeadLeases(platform.db, "image_pruning");
      const runtimes = (await platform.ports.runtime.describe()).name.split(",");
      let removed = 0;
      for (const project of await projectsWithImages(platform.db)) {
        if (signal.aborted) break;
        const { builder } = platform.ports;
        const listed = { at: platform.clock.now(), images: await builder.images(project.id, "runnable"), runtimes };
        await rebuildMissing(platform, project, listed);
        removed += await prune(platform, project, { images: await builder.images(project.id), signal });
      }
      return { detail: `${removed} removed` };
    },
  };
}

async function prune(
  platform: Platform,
  project: Project,
  { images, signal }: { readonly images: readonly string[]; readonly signal: AbortSignal },
): Promise<number> {
  const { db, owner, wakeups } = platform;
  const pruning = await claimPruning(db, project, { images, owner });
  if (pruning === undefined) return 0;
  const { lease } = pruning;
  try {
    return await holdLease(db, lease, signal, async (held) => {
      let removed = 0;
      for (const image_ref of pruning.images) {
        // Without the lease, a build may be creating this image again.
        if (held.aborted || !(await renewLease(db, lease))) break;
        if (await removeImage(platform, { project_id: project.id, image_ref })) removed += 1;
      }
      return removed;
    });
  } finally {
    await endPruning(db, wakeups, lease);
  }
}

/** Resolves to false if a replica still uses the image; the next run tries again. */
function removeImage({ ports, log }: Platform, image: { project_id: string; image_ref: string }): Promise<boolean> {
  return ports.runtime.removeImage(image).then(
    () => true,
    (error: unknown) => {
      log.debug({ err: error, image: image.image_ref }, "an image is still in use");
      return false;
    },
  );
}

/** Builds the commit that serves once more if its image is gone, such as after the loss of the folder `releases`. */
async function rebuildMissing(
  { db, wakeups, log }: Platform,
  project: { readonly id: string; readonly org_id: string },
  listed: ListedImages,
): Promise<void> {
  const { id: project_id, org_id } = project;
  await db.transaction().execute(async (tx) => {
    await lockProject(tx, { org_id, project_id });
    const lost = await missingImages(tx, project, listed);
    const source = lost === undefined ? undefined : await newestSource(tx, org_id, project_id, lost);
    if (source === undefined) return;
    const { commit, branch, message, author } = source;
    const wanted = { org_id, project_id, origin: "redeploy", commit, branch, message, author } as const;
    await requestBuild(tx, wakeups, { ...wanted, old_commit: null, lease_owner: null, requested_by: rebuilder });
    log.warn({ project: project_id, commit }, "the image that serves is missing, so its commit is built again");
  });
}
