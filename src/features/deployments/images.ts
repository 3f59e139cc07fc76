import { sql } from "kysely";
import type { Db } from "../../store/database.ts";
import { lockProject } from "../projects/projects.ts";

/** Good deployments whose images are kept for rollbacks, beside the one that serves. Semantics, §6. */
const keptGood = 5;

/** Projects that have deployments, oldest first. */
export async function projectsWithImages(db: Db): Promise<readonly { id: string; org_id: string }[]> {
  return db
    .selectFrom("project")
    .select(["id", "org_id"])
    .where("deploy_branch", "is not", null)
    .orderBy("number")
    .execute();
}

/**
 * Says which of these images are no longer needed, and marks their deployments so that no rollback asks for them. Needed are
 * those of deployments that serve or are on their way, and of the newest good ones. While a build runs, none is given up:
 * it may be about to make the same image again.
 */
export async function giveUpImages(
  db: Db,
  project: { id: string; org_id: string },
  images: readonly string[],
): Promise<readonly string[]> {
  if (images.length === 0) return [];
  return db.transaction().execute(async (tx) => {
    await lockProject(tx, { org_id: project.org_id, project_id: project.id });
    const building = await tx
      .selectFrom("build")
      .select("id")
      .where("org_id", "=", project.org_id)
      .where("project_id", "=", project.id)
      .where("status", "in", ["queued", "running"])
      .executeTakeFirst();
    if (building !== undefined) return [];
    const needed = await sql<{ image_ref: string }>`
      select image_ref from deployment where org_id = ${project.org_id} and project_id = ${project.id} and status in ('pending', 'starting', 'active')
      union
      select image_ref from (
        select image_ref, max(number) as newest from deployment
        where org_id = ${project.org_id} and project_id = ${project.id} and activated_at is not null and status <> 'active'
        group by image_ref order by newest desc limit ${sql.lit(keptGood)}) good`.execute(tx);
    const keep = new Set(needed.rows.map((row) => row.image_ref));
    const doomed = images.filter((image) => !keep.has(image));
    if (doomed.length > 0) await markPruned(tx, project, doomed);
    return doomed;
  });
}

async function markPruned(tx: Db, project: { id: string; org_id: string }, images: readonly string[]): Promise<void> {
  await tx
    .updateTable("deployment")
    .set({ image_pruned_at: sql`now()` })
    .where("org_id", "=", project.org_id)
    .where("project_id", "=", project.id)
    .where("image_ref", "in", [...images])
    .where("image_pruned_at", "is", null)
    .execute();
}
