import { giveUpImages, projectsWithImages } from "../../features/deployments/deployments.ts";
import type { Task } from "../driver.ts";
import type { World } from "../world.ts";

/** Deletes images that no deployment needs any more: all but that of the serving one and of the last good ones. */
export function imagesTask(world: World): Task {
  return {
    name: "images",
    periodMs: 600_000,
    topics: [],
    async run(signal) {
      let removed = 0;
      for (const project of await projectsWithImages(world.db)) {
        if (signal.aborted) break;
        removed += await prune(world, project);
      }
      return { detail: `${removed} removed` };
    },
  };
}

async function prune(world: World, project: { id: string; org_id: string }): Promise<number> {
  const images = await world.ports.builder.images(project.id);
  const doomed = await giveUpImages(world.db, project, images);
  let removed = 0;
  for (const image of doomed) {
    // One that still drains is refused, and goes next time.
    const isGone = await world.ports.runtime.removeImage({ project_id: project.id, image_ref: image }).then(
      () => true,
      (error: unknown) => {
        world.log.debug({ err: error, image }, "an image is still in use");
        return false;
      },
    );
    if (isGone) removed += 1;
  }
  return removed;
}
