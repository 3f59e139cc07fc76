import { claimPruning, endPruning, projectsWithImages } from "../../features/deployments/deployments.ts";
import { holdLease, releaseDeadLeases, renewLease } from "../../store/leases.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";
import { rebuildMissing } from "./rebuild-missing.ts";

interface Project {
  readonly id: string;
  readonly org_id: string;
}

/**
 * Deletes images that no deployment needs any more, keeping those of the serving deployment and of the last good ones, and builds a missing
 * serving one again.
 */
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
        const listed = { at: platform.clock.now(), images: await platform.ports.builder.images(project.id), runtimes };
        await rebuildMissing(platform, project, listed);
        removed += await prune(platform, project, { images: listed.images, signal });
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
