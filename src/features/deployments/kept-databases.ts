import type { Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";

const onItsWay = ["pending", "starting", "active"] as const;

/**
 * Pins the active deployment and those in progress to this database before another one becomes live. When such a deployment restarts after
 * a crash, it must not write to a different database than before.
 */
export async function keepDatabase(tx: Tx, { org_id, project_id }: ProjectKey, name: string): Promise<void> {
  await tx
    .updateTable("deployment")
    .set({ database_name: name })
    .where(({ and }) => and({ org_id, project_id }))
    .where("status", "in", onItsWay)
    .where("database_name", "is", null)
    .execute();
}

/** Returns whether the active deployment or one in progress is pinned to this database. */
export async function isDatabaseUsed(tx: Tx, { org_id, project_id }: ProjectKey, name: string): Promise<boolean> {
  const row = await tx
    .selectFrom("deployment")
    .select("id")
    .where(({ and }) => and({ org_id, project_id }))
    .where("status", "in", onItsWay)
    .where("database_name", "=", name)
    .executeTakeFirst();
  return row !== undefined;
}
