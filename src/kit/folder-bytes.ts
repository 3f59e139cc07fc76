import { existsSync } from "node:fs";
import { run } from "./exec.ts";

const timeoutMs = 120_000;
const blockBytes = 4096;

/**
 * Returns the total disk usage of folders in bytes, counting at least one block per file; 0 when none exists, null when it took too long.
 * `du` walks by descriptors and follows no links, so a process that rearranges a folder during the walk can't lead it elsewhere.
 */
export async function folderBytes(...folders: readonly string[]): Promise<number | null> {
  const present = folders.filter((folder) => existsSync(folder));
  if (present.length === 0) return 0;
  const bytes = await total("-B1", present);
  const files = bytes === null ? null : await total("--inodes", present);
  return bytes === null || files === null ? null : Math.max(bytes, files * blockBytes);
}

/** `du` skips what it may not read and exits with 1 when a file disappears during the walk; its total is used all the same. */
async function total(unit: "-B1" | "--inodes", folders: readonly string[]): Promise<number | null> {
  const args = ["-n", "19", "du", "-s", "-x", "-c", unit, "--", ...folders];
  const measured = await run({ file: "nice", args }, { timeoutMs });
  const found = /^(\d+)\ttotal$/m.exec(measured.stdout)?.[1];
  return measured.timedOut || found === undefined ? null : Number(found);
}
