import { sql } from "kysely";
import type { Db } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";

const mostKept = 3;

export async function insertSnapshot(
  db: Db,
  snapshot: ProjectKey & { readonly id: string; readonly deployment_id: string },
): Promise<void> {
  await db
    .insertInto("storage_snapshot")
    .values({ ...snapshot, status: "copying" })
    .execute();
}

/** Returns the ids of the newest complete snapshots that stay when another one is added. */
export async function keptSnapshots(db: Db, { org_id, project_id }: ProjectKey): Promise<string[]> {
  const rows = await db
    .selectFrom("storage_snapshot")
    .select("id")
    .where(({ and }) => and({ org_id, project_id, status: "complete" }))
    .orderBy("id", "desc")
    .limit(mostKept - 1)
    .execute();
  return rows.map(({ id }) => id);
}

/** Records a finished snapshot, and that all others but the kept ones are gone. `bytes` is null when there were no files. */
export async function completeSnapshot(
  db: Db,
  { org_id, project_id, id }: ProjectKey & { readonly id: string },
  bytes: number | null,
  kept: readonly string[],
): Promise<void> {
  await sql`update storage_snapshot set
      status = case when id = ${id} and ${bytes}::bigint is not null then 'complete' else 'deleted' end,
      bytes = case when id = ${id} then ${bytes}::bigint else bytes end,
      finished_at = coalesce(finished_at, now())
    where org_id = ${org_id} and project_id = ${project_id} and id <> all(${[...kept]}::text[]) and status <> 'deleted'`.execute(
    db,
  );
}
