import { systemVariables } from "../../contract/env.ts";
import { limits } from "../../contract/limits.ts";

/** Returns the name under which a variable's value is sealed. */
export function secretName(key: string): string {
  return `variable:${key}`;
}

const ofDatabases = ["DATABASE_URL", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE"];

/** Returns the size of a variable, in bytes, that counts towards the project's limit. */
export function sizeOf(key: string, value: string): number {
  return Buffer.byteLength(key) + Buffer.byteLength(value);
}

/** Returns whether the variable fits within the limits, beside the others. */
export function fits(
  others: readonly { readonly key: string; readonly size_bytes: number }[],
  key: string,
  sizeBytes: number,
): boolean {
  const rest = others.filter((other) => other.key !== key).reduce((sum, other) => sum + other.size_bytes, 0);
  return rest + sizeBytes <= limits.variables_bytes;
}

/** Returns the names of the variables that the platform sets for a project. */
export function systemKeys(hasDatabase: boolean): readonly string[] {
  const always = systemVariables.filter((key) => !ofDatabases.includes(key));
  return [...always, ...(hasDatabase ? ofDatabases : [])].sort();
}
