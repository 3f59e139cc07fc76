import { readFile } from "node:fs/promises";
import { readMigrations } from "../../src/store/migrate.ts";

/** Returns the recorded SHA-256 of each migration by its name, from `sql/SHA256SUMS` of the current folder. */
export async function readMigrationSums(): Promise<ReadonlyMap<string, string>> {
  const text = await readFile("sql/SHA256SUMS", "utf8").catch(() => "");
  return new Map([...text.matchAll(/^([0-9a-f]{64}) {2}(.+)$/gm)].map(([, sum = "", name = ""]) => [name, sum]));
}

/** Returns the text of `sql/SHA256SUMS` with the migrations that it lacks. Never changes a line: databases have applied that text. */
export async function migrationSumsText(): Promise<string> {
  const added = (await readMigrations()).map(({ name, sha256 }) => [name, sha256] as const);
  const sums = new Map([...added, ...(await readMigrationSums())]);
  return [...sums].map(([name, sum]) => `${sum}  ${name}\n`).join("");
}
