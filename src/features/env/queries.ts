import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";

/** Returns the project's own variables, sealed, ordered by key. */
export async function selectVariables(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return db
    .selectFrom("project_variable")
    .select(["key", "sealed_value", "size_bytes", "updated_at"])
    .where(({ and }) => and({ org_id, project_id }))
    .orderBy("key")
    .execute();
}

/** Returns the variables, sealed, that a preview inherits from its project; none for any other project. */
export async function selectInherited(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  const { rows } = await sql<{ key: string; project_id: string; sealed_value: Buffer }>`
    select v.key, v.project_id, v.sealed_value from project p
    join project parent on parent.id = p.preview_of and parent.org_id = p.org_id
    join project_variable v on v.project_id = parent.id and v.org_id = p.org_id and v.key = any(parent.preview_variables)
    where p.org_id = ${org_id} and p.id = ${project_id}`.execute(db);
  return rows;
}

export interface SealedVariable extends ProjectKey {
  readonly key: string;
  readonly sealed_value: Buffer;
  readonly size_bytes: number;
}

export async function upsertVariable(tx: Tx, variable: SealedVariable): Promise<void> {
  const { sealed_value, size_bytes } = variable;
  await tx
    .insertInto("project_variable")
    .values(variable)
    .onConflict((on) =>
      on.columns(["project_id", "key"]).doUpdateSet({ sealed_value, size_bytes, updated_at: sql`now()` }),
    )
    .execute();
}

export async function deleteVariable(tx: Tx, { org_id, project_id }: ProjectKey, key: string): Promise<boolean> {
  const done = await tx
    .deleteFrom("project_variable")
    .where(({ and }) => and({ org_id, project_id, key }))
    .executeTakeFirst();
  return done.numDeletedRows === 1n;
}

/** Marks the running application as having outdated variables; returns false when nothing runs or is about to. */
export async function setVariablesMark(tx: Tx, { org_id, project_id }: ProjectKey): Promise<boolean> {
  const done = await tx
    .updateTable("project")
    .set({ variables_changed_at: sql`now()` })
    .where(({ and }) => and({ org_id, id: project_id }))
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom("deployment")
          .select("deployment.id")
          .whereRef("deployment.project_id", "=", "project.id")
          .where("deployment.status", "in", ["active", "pending", "starting"]),
      ),
    )
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}
