import { newestSource, requestBuild } from "../../features/builds/builds.ts";
import { missingImages, rebuilder, type ListedImages } from "../../features/deployments/deployments.ts";
import { lockProject } from "../../features/projects/projects.ts";
import type { Platform } from "../platform.ts";

/** Builds the commit that serves once more if its image is gone, such as after the loss of the folder `releases`. */
export async function rebuildMissing(
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
