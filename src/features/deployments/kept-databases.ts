import type { Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";

const onItsWay = ["pending", "starting", "active"] as const;

/**
 * What serves or is on its way keeps this database, which is live until now, whatever becomes live: started again after a crash it must
 * not write into another one than before.
 */
export async function keepDatabase(tx: Tx, { org_id, project_id }: ProjectKey, name: string): Promise<void> {
  await tx
    .updateTable("deployment")
    .set({ database_name: name })
    .where("org_id", "=", org_id)
    .where("project_id", "=", project_id)
    .where("status", "in", onItsWay)
    .where("database_name", "is", null)
    .execute();
}

/** Whether something that serves or is on its way keeps this database. */
export async function isDatabaseUsed(tx: Tx, { org_id, project_id }: ProjectKey, name: string): Promise<boolean> {
  const row = await tx
    .selectFrom("deployment")
    .select("id")
    .where("org_id", "=", org_id)
    .where("project_id", "=", project_id)
    .where("status", "in", onItsWay)
    .where("database_name", "=", name)
    .executeTakeFirst();
  return row !== undefined;
}
