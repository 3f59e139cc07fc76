import type { Db, Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { lockProject, type ProjectKey } from "../projects/projects.ts";
import { selectVariables, setVariablesMark } from "./queries.ts";
import { secretName, sizeOf } from "./rules.ts";

/** The project's own variables with their values. What the platform adds (`PORT`, `DATABASE_URL` …) is not among them. */
export async function variablesOf(db: Db | Tx, vault: Vault, project: ProjectKey): Promise<Record<string, string>> {
  const rows = await selectVariables(db, project);
  return Object.fromEntries(
    rows.map((row) => [row.key, vault.open(project.project_id, secretName(row.key), row.sealed_value)]),
  );
}

/** The names of the project's own variables. */
export async function variableNames(db: Db | Tx, project: ProjectKey): Promise<readonly string[]> {
  return (await selectVariables(db, project)).map(({ key }) => key);
}

/** Variables as the project's are stored. */
export function sealVariables(vault: Vault, projectId: string, variables: Readonly<Record<string, string>>) {
  return Object.entries(variables).map(([key, value]) => ({
    key,
    size_bytes: sizeOf(key, value),
    sealed_value: vault.seal(projectId, secretName(key), value),
  }));
}

/** The application learns of changed variables, its database's included, by a restart with them; there is none to restart before its first deployment. */
export async function markVariablesChanged(wakeups: Wakeups, tx: Tx, project: ProjectKey): Promise<void> {
  // A deployment that is being made at this moment has read the old ones already, and must be seen.
  await lockProject(tx, project);
  if (await setVariablesMark(tx, project)) await wakeups.send(tx, "releases", project.project_id);
}
