import type { Page } from "../../kit/page.ts";
import { triggersOfBuilds } from "../../contract/states.ts";
import type { Db, Tx } from "../../store/database.ts";
import { imageBytes } from "../images/images.ts";
import type { ProjectKey } from "../projects/projects.ts";

const shown = [
  "build.id",
  "build.number",
  "build.status",
  "build.commit",
  "build.branch",
  "build.message",
  "build.author",
  "build.requested_by",
  "build.image_ref",
  "build.created_at",
  "build.started_at",
  "build.finished_at",
  "build.failure",
  "build.rehearse_only",
] as const;

/** Returns the newest builds of a project, or the newest before the cursor; one more than a page shows. */
export async function listBuilds(db: Db | Tx, orgId: string, projectId: string, { cursor, limit }: Page<number>) {
  const query = db.selectFrom("build").select(shown).where("org_id", "=", orgId).where("project_id", "=", projectId);
  return (cursor === undefined ? query : query.where("number", "<", cursor))
    .orderBy("number", "desc")
    .limit(limit + 1)
    .execute();
}

export async function selectBuild(db: Db | Tx, orgId: string, id: string) {
  return db
    .selectFrom("build")
    .innerJoin("project", "project.id", "build.project_id")
    .select([...shown, "build.project_id", "project.deleted_at"])
    .where(({ and }) => and({ "build.org_id": orgId, "build.id": id }))
    .executeTakeFirst();
}

/** Returns the first deployment that a push or a redeploy created from this build. */
export async function selectOutcome(db: Db | Tx, orgId: string, buildId: string) {
  return db
    .selectFrom("deployment")
    .select(["number", "status", "failure", imageBytes()])
    .where(({ and }) => and({ org_id: orgId, build_id: buildId }))
    .where("trigger", "in", triggersOfBuilds)
    .orderBy("number")
    .limit(1)
    .executeTakeFirst();
}

/** Returns whether a build or deployment of the project's source is in progress; with `commit`, one of that commit. */
export async function hasWorkInProgress(
  db: Db | Tx,
  { org_id, project_id }: ProjectKey,
  commit?: string,
): Promise<boolean> {
  const row = await db
    .selectFrom("build")
    .leftJoin("deployment", "deployment.build_id", "build.id")
    .select("build.id")
    .where(({ and }) => and({ "build.org_id": org_id, "build.project_id": project_id }))
    .$if(commit !== undefined, (query) => query.where("build.commit", "=", commit as string))
    .where((of) =>
      of.or([
        of("build.status", "in", ["queued", "running"]),
        of.and([
          of("deployment.status", "in", ["pending", "starting"]),
          of("deployment.trigger", "in", triggersOfBuilds),
        ]),
      ]),
    )
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

export async function hasDeployed(db: Db | Tx, { org_id, project_id }: ProjectKey, commit: string): Promise<boolean> {
  const row = await db
    .selectFrom("deployment")
    .select("id")
    .where(({ and }) => and({ org_id, project_id, commit }))
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns whether a deployment of this build has yet to go live. Its lines are added to the build's log too. */
export async function hasComingDeployment(db: Db | Tx, orgId: string, buildId: string): Promise<boolean> {
  const row = await db
    .selectFrom("deployment")
    .select("id")
    .where(({ and }) => and({ org_id: orgId, build_id: buildId }))
    .where("trigger", "in", triggersOfBuilds)
    .where("status", "in", ["pending", "starting"])
    .executeTakeFirst();
  return row !== undefined;
}
