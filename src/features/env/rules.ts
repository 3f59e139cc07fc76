import { systemVariables } from "../../contract/env.ts";
import { limits } from "../../contract/limits.ts";

/** Returns the name under which a variable's value is sealed. */
export function secretName(key: string): string {
  return `variable:${key}`;
}

const ofPreviews = ["BERTH_GIT_BRANCH", "BERTH_PREVIEW", "BERTH_PREVIEW_OF"];
const ofDatabases = ["DATABASE_URL", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE"];

/** Returns the size of a variable, in bytes, that counts towards the project's limit. */
export function sizeOf(key: string, value: string): number {
  return Buffer.byteLength(key) + Buffer.byteLength(value);
}

type Sized = readonly { readonly key: string; readonly size_bytes: number }[];

/** Returns whether the project's variables fit within the limits once the given ones are added to the stored ones. */
export function fits(stored: Sized, given: Sized): boolean {
  const sizes = new Map([...stored, ...given].map(({ key, size_bytes }) => [key, size_bytes]));
  return [...sizes.values()].reduce((sum, size) => sum + size, 0) <= limits.variables_bytes;
}

export function systemKeys(hasDatabase: boolean, isPreview: boolean): readonly string[] {
  const left = [...(hasDatabase ? [] : ofDatabases), ...(isPreview ? [] : ofPreviews)];
  return [...new Set([...systemVariables, ...ofDatabases])].filter((key) => !left.includes(key)).sort();
}
