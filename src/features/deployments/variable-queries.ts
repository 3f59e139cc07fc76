import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";

/** Clears the project's pending restart if this deployment already has the variable change that caused it. A later change stays pending. */
export async function settleVariables(
  tx: Tx,
  deployment: { readonly id: string; readonly org_id: string },
): Promise<void> {
  const { id, org_id } = deployment;
  await sql`update project p set variables_changed_at = null from deployment d
    where d.org_id = ${org_id} and d.id = ${id} and p.org_id = d.org_id and p.id = d.project_id
      and p.variables_changed_at = d.variables_changed_at`.execute(tx);
}

export async function variablesOfNumber(db: Db | Tx, orgId: string, projectId: string, number: number) {
  return db
    .selectFrom("deployment")
    .select(["id", "project_id", "sealed_variables"])
    .where(({ and }) => and({ org_id: orgId, project_id: projectId, number }))
    .executeTakeFirst();
}

/** Stores the variables that become the project's when this rollback goes live, except that those not in `changed` stay as they are. */
export async function setRestoredVariables(
  tx: Tx,
  id: string,
  variables: readonly { readonly key: string; readonly sealed_value: Buffer; readonly size_bytes: number }[],
  changed: readonly string[],
): Promise<void> {
  const rows = variables.map(({ sealed_value, ...each }) => ({
    ...{ ...each, sealed_value: sealed_value.toString("base64"), same: !changed.includes(each.key) },
  }));
  await tx
    .updateTable("deployment")
    .set({ restored_variables: JSON.stringify(rows) })
    .where("id", "=", id)
    .execute();
}

/** Makes the variables of a rollback the project's. Variables set while the rollback was in progress are kept. */
export async function restoreVariables(tx: Tx, { id }: { readonly id: string }): Promise<void> {
  await sql`delete from project_variable v using deployment d where d.id = ${id} and d.restored_variables is not null
    and v.org_id = d.org_id and v.project_id = d.project_id and v.updated_at <= d.created_at
    and not exists (select from jsonb_to_recordset(d.restored_variables) r (key text, same boolean) where r.key = v.key and r.same)`.execute(
    tx,
  );
  await sql`insert into project_variable (org_id, project_id, key, sealed_value, size_bytes)
    select d.org_id, d.project_id, r.key, decode(r.sealed_value, 'base64'), r.size_bytes
    from deployment d, jsonb_to_recordset(d.restored_variables) r (key text, sealed_value text, size_bytes integer)
    where d.id = ${id} on conflict (project_id, key) do nothing`.execute(tx);
}
