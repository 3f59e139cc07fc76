import { existsSync } from "node:fs";
import { run } from "./exec.ts";

const timeoutMs = 120_000;
const blockBytes = 4096;

/** What `folderBytes` returns for a folder without anything in it. */
export const emptyFolderBytes = blockBytes;

/**
 * Returns the total disk usage of folders in bytes, counting at least one block per file; 0 when none exists, null when it took too long.
 * `du` walks by descriptors and follows no links, so a process that rearranges a folder during the walk can't lead it elsewhere.
 */
export const folderBytes = (...folders: readonly string[]): Promise<number | null> =>
  measure(folders, [...background, "du"]);

/** The same at a higher priority than builds and applications, for results that are needed urgently. */
export const folderBytesNow = (...folders: readonly string[]): Promise<number | null> => measure(folders, ["du"]);

const background = ["nice", "-n", "19"];

type Command = readonly string[];

async function measure(folders: readonly string[], command: Command): Promise<number | null> {
  const present = folders.filter((folder) => existsSync(folder));
  if (present.length === 0) return 0;
  const bytes = await total(command, "-B1", present);
  const files = bytes === null ? null : await total(command, "--inodes", present);
  return bytes === null || files === null ? null : Math.max(bytes, files * blockBytes);
}

/** `du` skips what it may not read and exits with 1 when a file disappears during the walk; its total is used all the same. */
async function total(command: Command, unit: "-B1" | "--inodes", folders: readonly string[]): Promise<number | null> {
  const [file = "", ...args] = [...command, "-s", "-x", "-c", unit, "--", ...folders];
  const measured = await run({ file, args }, { timeoutMs });
  const found = /^(\d+)\ttotal$/m.exec(measured.stdout)?.[1];
  return measured.timedOut || found === undefined ? null : Number(found);
}
