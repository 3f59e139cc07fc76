import { run } from "../../kit/exec.ts";

const timeoutMs = 120_000;

/**
 * How much each folder takes on the disk, in bytes, by its name; a folder that does not exist takes nothing. Null when that
 * could not be found out in two minutes.
 */
export async function folderSizes(
  folders: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Readonly<Record<string, number>> | null> {
  const args = ["-n", "19", "du", "-sx", "-B1", "--", ...Object.values(folders)];
  const result = await run({ file: "nice", args }, { timeoutMs, signal });
  if (result.timedOut || signal.aborted) return null;
  // It ends with 1 when a file went away under its hands; what it printed counts all the same.
  const sizes = new Map(
    result.stdout.split("\n").map((line) => [line.slice(line.indexOf("\t") + 1), Number(line.split("\t")[0])]),
  );
  return Object.fromEntries(Object.entries(folders).map(([name, folder]) => [name, sizes.get(folder) ?? 0]));
}
