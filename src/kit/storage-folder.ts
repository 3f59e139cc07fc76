import { existsSync, mkdirSync } from "node:fs";
import { basename } from "node:path";
import { missingStorage } from "./part-missing.ts";

/** Creates a project's storage folder, named by the project's id. Throws `PartMissing` if it is missing although rows say it holds files. */
export function ensureStorageFolder(folder: string, hasFiles: boolean): void {
  if (hasFiles && !existsSync(folder)) throw missingStorage(basename(folder));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}
