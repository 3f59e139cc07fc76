import { open } from "node:fs/promises";
import { runOk } from "../../../kit/exec.ts";

/**
 * Resolves when all that was written on the file system of a folder is on the disk (syncfs(2)). A release has thousands of files, of
 * which each alone would wait for the disk; some 20 ms for a hundred megabytes on a quiet SSD.
 */
export async function syncFileSystem(folder: string, signal?: AbortSignal): Promise<void> {
  await runOk({ file: "sync", args: ["--file-system", folder] }, signal === undefined ? {} : { signal });
}

/** The same for the names in one folder. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
