import { createHmac, randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * The layer cache and the folders of `--mount=type=cache` are the engine's, one for all projects. A random word that only the project's
 * builds know is part of every key: no build takes what another project's commands made, nor leaves something for it.
 */
export async function cacheScope(dir: string, projectId: string): Promise<string> {
  const file = join(dir, projectId);
  const known = await readFile(file, "utf8").catch(() => undefined);
  if (known !== undefined) return known;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeFile(file, randomBytes(16).toString("hex"), { mode: 0o600, flag: "wx" }).catch(() => {});
  return await readFile(file, "utf8");
}

/** Forgets the project's word: nothing finds its caches any more, and the engine removes what nothing uses. */
export async function forgetCacheScope(dir: string, projectId: string): Promise<void> {
  await rm(join(dir, projectId), { force: true });
}

/** The scope of commands that read these variables, whose values are no part of the engine's own keys. */
export function scopeOfVariables(scope: string, env: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(env).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return createHmac("sha256", scope).update(JSON.stringify(sorted)).digest("hex");
}
