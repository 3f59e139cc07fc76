import { triggersOfBuilds } from "../../contract/states.ts";
import { sql } from "kysely";
import type { Failure } from "../../ports/failure.ts";
import type { Db, Tx } from "../../store/database.ts";

/**
 * Fails the build's deployment that is in progress; raising the fence takes it away from its worker. Returns undefined when there is none.
 */
export async function endComing(
  db: Db | Tx,
  build: { readonly org_id: string; readonly id: string },
  failure: Failure,
): Promise<{ readonly id: string; readonly project_id: string } | undefined> {
  return db
    .updateTable("deployment")
    .set({
      status: "failed",
      failure: JSON.stringify(failure),
      finished_at: sql`now()`,
      lease_until: null,
      fence: sql`fence + 1`,
    })
    .where(({ and }) => and({ org_id: build.org_id, build_id: build.id }))
    .where("trigger", "in", triggersOfBuilds)
    .where("status", "in", ["pending", "starting"])
    .returning(["id", "project_id"])
    .executeTakeFirst();
}
