import { hash } from "node:crypto";
import type { BuildPlan, BuiltFiles } from "../../src/detection/plan.ts";
import { lockBeginningBytes, makeTree, readingOf, type SourceTree } from "../../src/detection/source-tree.ts";

/** Creates a tree of the given files, for tests that need no disk. */
export function testTree(files: Readonly<Record<string, string>>): SourceTree {
  const lockFiles = Object.entries(files).filter(([path]) => readingOf(path) === "lock");
  const locked = lockFiles.map(
    ([path, text]) => [path, { digest: hash("sha256", text), beginning: text.slice(0, lockBeginningBytes) }] as const,
  );
  return makeTree(Object.keys(files).sort(), new Map(Object.entries(files)), new Map(locked));
}

const noFiles: BuiltFiles = {
  has: () => false,
  mayExist: () => true,
  folders: () => [],
  files: () => [],
  pages: () => 0,
};

/** Returns the command that starts what a plan has built, else the other way in which it starts. */
export function startCommand({ start }: Pick<BuildPlan, "start">, files = noFiles): string {
  const started = start(files);
  return started.how === "command" ? started.command : started.how;
}
