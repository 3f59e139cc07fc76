import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";

export async function plannedProject(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return db
    .selectFrom("project")
    .leftJoin("deployment", (on) =>
      on.onRef("deployment.project_id", "=", "project.id").on("deployment.status", "=", "active"),
    )
    .select([
      ...(["project.root", "project.watch", "project.port", "project.health_path", "project.replicas"] as const),
      sql<string | null>`deployment.image ->> 'runtime'`.as("runtime"),
      sql<
        string[]
      >`coalesce((select array_agg(t.process) from deployment_process t where t.deployment_id = deployment.id), '{}')`.as(
        "types",
      ),
    ])
    .where(({ and }) => and({ "project.org_id": org_id, "project.id": project_id }))
    .executeTakeFirstOrThrow();
}

export async function processSettings(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return db
    .selectFrom("process_setting")
    .select(["process", "replicas", "overlap"])
    .where(({ and }) => and({ org_id, project_id }))
    .execute();
}

/** Returns the newest succeeded build of a commit that has an image. */
export async function earlierBuild(db: Db | Tx, { org_id, project_id }: ProjectKey, commit: string) {
  return db
    .selectFrom("build")
    .select(["number", "image_ref"])
    .where(({ and }) => and({ org_id, project_id, commit, status: "succeeded" }))
    .where("image_ref", "is not", null)
    .orderBy("number", "desc")
    .limit(1)
    .$narrowType<{ image_ref: string }>()
    .executeTakeFirst();
}
