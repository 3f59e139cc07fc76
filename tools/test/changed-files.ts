import { existsSync } from "node:fs";

import { runOk } from "../../src/kit/exec.ts";
import { reachableModules } from "./reachable-modules.ts";
import { shownFolders } from "./shown-folders.ts";
import type { TestFile } from "./test-files.ts";

/** Returns the files that differ from `base`, or the merge base with the branch that this one follows. Null without one. */
export async function changedFiles(base: string | undefined): Promise<readonly string[] | null> {
  try {
    const since = base ?? (await git("merge-base", "HEAD", "@{upstream}")).trim();
    const tracked = await git("diff", "-z", "--name-only", "--no-renames", since);
    const untracked = await git("ls-files", "-z", "--others", "--exclude-standard");
    return `${tracked}${untracked}`.split("\0").filter((file) => file !== "");
  } catch {
    return null;
  }
}

async function git(...args: string[]): Promise<string> {
  return (await runOk({ file: "git", args }, { cwd: process.cwd(), maxOutputBytes: 64 << 20 })).stdout;
}

/** Whether a change of these files can turn the test file red, by what it imports or by the table of folders. */
export function reaches(changed: ReadonlySet<string>, { file }: TestFile): boolean {
  if (changed.has(file)) return true;
  const parts = shownFolders[file];
  if (parts !== undefined)
    return [...changed].some((path) => parts.some((part) => path.includes(part)) && !path.endsWith(".test.ts"));
  return [...reachableModules(file)].some((module) => changed.has(module) && existsSync(module));
}
