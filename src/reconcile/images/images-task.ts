import { giveUpImages, projectsWithImages } from "../../features/deployments/deployments.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";

/** Deletes images that no deployment needs any more: all but that of the serving one and of the last good ones. */
export function imagesTask(platform: Platform): Task {
  return {
    name: "images",
    periodMs: 600_000,
    topics: [],
    async run(signal) {
      let removed = 0;
      for (const project of await projectsWithImages(platform.db)) {
        if (signal.aborted) break;
        removed += await prune(platform, project);
      }
      return { detail: `${removed} removed` };
    },
  };
}

async function prune(platform: Platform, project: { id: string; org_id: string }): Promise<number> {
  const images = await platform.ports.builder.images(project.id);
  const doomed = await giveUpImages(platform.db, project, images);
  let removed = 0;
  for (const image of doomed) {
    // One that still drains is refused, and goes next time.
    const isGone = await platform.ports.runtime.removeImage({ project_id: project.id, image_ref: image }).then(
      () => true,
      (error: unknown) => {
        platform.log.debug({ err: error, image }, "an image is still in use");
        return false;
      },
    );
    if (isGone) removed += 1;
  }
  return removed;
}
