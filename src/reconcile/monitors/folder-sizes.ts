import { run } from "../../kit/exec.ts";

const timeoutMs = 120_000;

/**
 * Returns how much disk space each folder uses, in bytes, by name; a missing folder uses none. Null if that takes more than two minutes.
 */
export async function folderSizes(
  folders: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Readonly<Record<string, number>> | null> {
  // Without operands du would measure the current folder.
  if (Object.keys(folders).length === 0) return {};
  const args = ["-n", "19", "du", "-sx", "-B1", "--", ...Object.values(folders)];
  const result = await run({ file: "nice", args }, { timeoutMs, signal });
  if (result.timedOut || signal.aborted) return null;
  // du exits with 1 if a file disappeared while it ran; its output is valid all the same.
  const sizes = new Map(
    result.stdout.split("\n").map((line) => [line.slice(line.indexOf("\t") + 1), Number(line.split("\t")[0])]),
  );
  return Object.fromEntries(Object.entries(folders).map(([name, folder]) => [name, sizes.get(folder) ?? 0]));
}
