const full = new Set(["ENOSPC", "EDQUOT", "53100"]);

/**
 * Returns whether an error or one of its causes means that a disk accepts no more data: `full` for lack of space, inodes or quota,
 * `read_only` when the file system accepts no writes. PostgreSQL reports the latter as a missing privilege.
 */
export function diskFault(error: unknown): "full" | "read_only" | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code = "", message } = cause as NodeJS.ErrnoException;
    if (full.has(code) || message.includes("No space left on device")) return "full";
    if (code === "EROFS" || message.includes("Read-only file system")) return "read_only";
  }
  return undefined;
}

/** Does work that writes below a folder. Throws a sentence that names the folder when its disk is full. */
export async function onDiskOf<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (diskFault(error) !== "full") throw error;
    throw new Error(`The disk of ${folder} is full. Free some space on it, then try again.`, { cause: error });
  }
}
