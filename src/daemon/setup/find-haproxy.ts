import { run } from "../../kit/exec.ts";
import { findProgram } from "./find-program.ts";

/** Returns the path of HAProxy 2.6 or later; null if there is none. Older versions lack the runtime commands that the edge needs. */
export async function findHaproxy(searchPath: string): Promise<string | null> {
  const file = findProgram("haproxy", searchPath);
  if (file === null) return null;
  const { stdout } = await run({ file, args: ["-v"] }).catch(() => ({ stdout: "" }));
  const [, major = "0", minor = "0"] = /version (\d+)\.(\d+)/.exec(stdout) ?? [];
  return Number(major) > 2 || (Number(major) === 2 && Number(minor) >= 6) ? file : null;
}
