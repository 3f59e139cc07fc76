import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import type { StorageOwner } from "../../ports/runtime.ts";
import { uidOf, type ProcessRuntimeOptions } from "./settings.ts";

const timeoutMs = 120_000;
const missing = 66;
const script = `[ -e "$1" ] || [ -L "$1" ] || exit ${missing}; rm -rf -- "$1"`;

/**
 * Deletes below a storage folder, in a sandbox that sees nothing else: the folder belongs to the user that runs the project's code, so
 * links in it may point anywhere.
 */
export async function removeStored(
  options: ProcessRuntimeOptions,
  owner: StorageOwner,
  path: string,
  signal: AbortSignal,
): Promise<boolean> {
  const storageDir = options.storageDir(owner.project_id, owner.project_number);
  if (!existsSync(storageDir)) return false;
  const result = await options.sandbox.run(
    {
      ...{ id: `run-${randomBytes(8).toString("hex")}`, uid: uidOf(options, owner), storageDir, cwd: "/storage" },
      ...{ argv: ["/bin/sh", "-c", script, "sh", path], env: {}, app: null, binds: [] },
      ...{ network: { kind: "none" }, limits: null },
    },
    { timeoutMs, signal },
  );
  if (result.exitCode === missing) return false;
  signal.throwIfAborted();
  if (result.exitCode !== 0) throw new Error(`the files could not be deleted: ${result.stderr.slice(0, 300)}`);
  return true;
}
