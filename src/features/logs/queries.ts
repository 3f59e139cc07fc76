import type { Db, Tx } from "../../store/database.ts";

export async function selectNewestBuild(db: Db | Tx, orgId: string, projectId: string) {
  return db
    .selectFrom("build")
    .select("id")
    .where(({ and }) => and({ org_id: orgId, project_id: projectId }))
    .orderBy("number", "desc")
    .limit(1)
    .executeTakeFirst();
}

export async function selectBuildOf(db: Db | Tx, orgId: string, projectId: string, id: string) {
  return db
    .selectFrom("build")
    .select(["id", "status"])
    .where(({ and }) => and({ org_id: orgId, project_id: projectId, id }))
    .executeTakeFirst();
}
