import { run } from "../../kit/exec.ts";

/**
 * Returns the first of these paths that is HAProxy 2.6 or later; null if none is. Older versions lack the runtime commands that the edge
 * needs.
 */
export async function findHaproxy(paths: readonly (string | null)[]): Promise<string | null> {
  for (const file of paths) {
    if (file === null) continue;
    const { stdout } = await run({ file, args: ["-v"] }).catch(() => ({ stdout: "" }));
    const [, major = "0", minor = "0"] = /version (\d+)\.(\d+)/.exec(stdout) ?? [];
    if (Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 6)) return file;
  }
  return null;
}
