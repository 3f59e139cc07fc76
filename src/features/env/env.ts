import type { Db, Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import { selectVariables } from "./queries.ts";
import { secretName } from "./rules.ts";

/** The project's own variables with their values. What the platform adds (`PORT`, `DATABASE_URL` …) is not among them. */
export async function variablesOf(
  db: Db | Tx,
  vault: Vault,
  project: { readonly org_id: string; readonly project_id: string },
): Promise<Record<string, string>> {
  const rows = await selectVariables(db, project);
  return Object.fromEntries(
    rows.map((row) => [row.key, vault.open(project.project_id, secretName(row.key), row.sealed_value)]),
  );
}
