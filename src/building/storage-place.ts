import { lstatSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { BuildRefused } from "../detection/failures.ts";
import type { BuildLog } from "./build-log.ts";

/** Folders of a sandbox in which nothing else can be mounted. */
const ofSystem = /^\/(?:usr|s?bin|lib\w*|etc|opt|run|var\/tmp)\//;

/**
 * Creates the folder of a release on which the persistent folder is mounted, if berth.json's `storage` lies in the application's folder.
 * Throws for a path at which it cannot be mounted. The project's own files decide the path, so no link is followed.
 */
export function makeStoragePlace(log: BuildLog, app: string, storage: string): void {
  if (ofSystem.test(storage)) throw unusable(storage, "the system's programs are there");
  if (!storage.startsWith("/app/")) return;
  const names = storage.split("/").slice(2);
  for (const index of names.keys()) {
    const path = join(app, ...names.slice(0, index + 1));
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) mkdirSync(path, { mode: 0o755 });
    else if (!found.isDirectory()) throw unusable(storage, `${names.slice(0, index + 1).join("/")} is no folder`);
  }
  const hidden = readdirSync(join(app, ...names)).length;
  if (hidden > 0) log.detail(`${names.join("/")} of the repository is hidden: the persistent folder is mounted there`);
}

function unusable(storage: string, why: string): BuildRefused {
  const summary = `The persistent folder cannot be mounted at ${storage}, as berth.json's \`storage\` asks: ${why}.`;
  return new BuildRefused("storage_path_unusable", { summary });
}
