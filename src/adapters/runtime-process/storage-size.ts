import { existsSync } from "node:fs";
import { run } from "../../kit/exec.ts";

const timeoutMs = 120_000;

/**
 * What a folder takes on disk, in bytes; 0 when there is none, null when that took too long. `du` walks by descriptors and follows no
 * links, so an application that rearranges its folder meanwhile leads it nowhere else. What it may not read is left out.
 */
export async function storageSize(folder: string): Promise<number | null> {
  if (!existsSync(folder)) return 0;
  const measured = await run({ file: "du", args: ["-s", "-x", "-B1", "--", folder] }, { timeoutMs });
  const bytes = /^(\d+)\t/.exec(measured.stdout)?.[1];
  return measured.timedOut || bytes === undefined ? null : Number(bytes);
}
