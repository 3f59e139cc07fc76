import type { Db, Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { lockProject, type ProjectKey } from "../projects/projects.ts";
import { selectInherited, selectVariables, setVariablesMark } from "./queries.ts";
import { secretName, sizeOf } from "./rules.ts";

/** Returns the project's variables with their values, inherited ones included, without those that the platform adds. */
export async function variablesOf(db: Db | Tx, vault: Vault, project: ProjectKey): Promise<Record<string, string>> {
  const own = await selectVariables(db, project);
  const rows = [...(await selectInherited(db, project)), ...own.map((row) => ({ ...row, ...project }))];
  return Object.fromEntries(
    rows.map((row) => [row.key, vault.open(row.project_id, secretName(row.key), row.sealed_value)]),
  );
}

/** Returns the names of the project's variables, as `variablesOf`. */
export async function variableNames(db: Db | Tx, project: ProjectKey): Promise<readonly string[]> {
  const rows = [...(await selectInherited(db, project)), ...(await selectVariables(db, project))];
  return [...new Set(rows.map(({ key }) => key))];
}

export function sealVariables(vault: Vault, projectId: string, variables: Readonly<Record<string, string>>) {
  return Object.entries(variables).map(([key, value]) => ({
    key,
    size_bytes: sizeOf(key, value),
    sealed_value: vault.seal(projectId, secretName(key), value),
  }));
}

/** Schedules a restart with the changed variables, including those of the database, unless nothing was deployed yet. */
export async function markVariablesChanged(wakeups: Wakeups, tx: Tx, project: ProjectKey): Promise<void> {
  // A deployment that is being created has already read the old variables; the lock waits for it, so that it is marked too.
  await lockProject(tx, project);
  if (await setVariablesMark(tx, project)) await wakeups.send(tx, "releases", project.project_id);
}
