import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

import { reachableModules } from "./reachable-modules.ts";
import { shownFolders } from "./shown-folders.ts";
import type { TestFile } from "./test-files.ts";

/**
 * Returns the files that differ from the commit `base`, those that git does not track included. Without a base, the merge base with the
 * branch that this one follows. Null when there is none to compare with.
 */
export function changedFiles(base: string | undefined): readonly string[] | null {
  try {
    const since = base ?? git("merge-base", "HEAD", "@{upstream}").trim();
    const untracked = git("ls-files", "-z", "--others", "--exclude-standard");
    return `${git("diff", "-z", "--name-only", "--no-renames", since)}${untracked}`
      .split("\0")
      .filter((file) => file !== "");
  } catch {
    return null;
  }
}

function git(...args: string[]): string {
  return execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 64 << 20 });
}

/** Whether a change of these files can turn the test file red, by what it imports or by the table of folders. */
export function reaches(changed: ReadonlySet<string>, { file }: TestFile): boolean {
  if (changed.has(file)) return true;
  const parts = shownFolders[file];
  if (parts !== undefined)
    return [...changed].some((path) => parts.some((part) => path.includes(part)) && !isTest(path));
  return [...reachableModules(file)].some((module) => changed.has(module) && existsSync(module));
}

const isTest = (path: string) => path.endsWith(".test.ts");
