import { createHmac, randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Returns the project's random cache scope, which is part of every cache key. The engine's layer cache and its `--mount=type=cache` folders
 * are shared by all projects; the scope keeps a build from using or leaving results of another project's commands.
 */
export async function cacheScope(dir: string, projectId: string): Promise<string> {
  const file = join(dir, projectId);
  const known = await readFile(file, "utf8").catch(() => undefined);
  if (known !== undefined) return known;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeFile(file, randomBytes(16).toString("hex"), { mode: 0o600, flag: "wx" }).catch(() => {});
  return await readFile(file, "utf8");
}

/** Deletes the project's scope: its caches cannot be found any more, and the engine removes what is unused. */
export async function forgetCacheScope(dir: string, projectId: string): Promise<void> {
  await rm(join(dir, projectId), { force: true });
}

/** Returns the scope of commands that read these variables, whose values are not part of the engine's own cache keys. */
export function scopeOfVariables(scope: string, env: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(env).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return createHmac("sha256", scope).update(JSON.stringify(sorted)).digest("hex");
}

/** Returns the entry of `/etc/hosts` that all commands of a build get, those of a base image's ONBUILD too: BuildKit keys its results by the name. */
export function hostOfScope(scope: string): string {
  return `${scope}.${scopeDomain}:127.0.0.1`;
}

/** `runc.sh` finds a command's build by it. */
const scopeDomain = "scope.berth.invalid";
