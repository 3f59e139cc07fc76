import { systemVariables } from "../../contract/env.ts";
import { limits } from "../../contract/limits.ts";

/** The name that a variable's value is sealed under. */
export function secretName(key: string): string {
  return `variable:${key}`;
}

const ofDatabases = ["DATABASE_URL", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE"];

/** What a variable counts towards the project's limit. */
export function sizeOf(key: string, value: string): number {
  return Buffer.byteLength(key) + Buffer.byteLength(value);
}

/** Whether the variable fits beside the others. */
export function fits(
  others: readonly { readonly key: string; readonly size_bytes: number }[],
  key: string,
  sizeBytes: number,
): boolean {
  const rest = others.filter((other) => other.key !== key).reduce((sum, other) => sum + other.size_bytes, 0);
  return rest + sizeBytes <= limits.variables_bytes;
}

/** The variables that the platform sets for a project, by name. */
export function systemKeys(hasDatabase: boolean): readonly string[] {
  const always = systemVariables.filter((key) => !ofDatabases.includes(key));
  return [...always, ...(hasDatabase ? ofDatabases : [])].sort();
}
