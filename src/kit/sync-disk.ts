import { open } from "node:fs/promises";
import { runOk } from "./exec.ts";

/** Resolves when the folder's file system is on disk (syncfs(2)). Syncing thousands of files one by one waits for the disk each time. */
export async function syncFileSystem(folder: string, signal?: AbortSignal): Promise<void> {
  await runOk({ file: "sync", args: ["--file-system", folder] }, signal === undefined ? {} : { signal });
}

/** Resolves when the names in one folder are on disk. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
