import { existsSync } from "node:fs";
import { join } from "node:path";

import { runOk } from "../../src/kit/exec.ts";

/** The files under `root` that git tracks or would track, relative to it; all when no path is given. */
export async function trackedFiles(paths: readonly string[] = [], root = process.cwd()): Promise<readonly string[]> {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ...paths];
  const { stdout } = await runOk({ file: "git", args: ["-c", "safe.directory=*", ...args] }, { cwd: root });
  return stdout.split("\0").filter((file) => file !== "" && existsSync(join(root, file)));
}
