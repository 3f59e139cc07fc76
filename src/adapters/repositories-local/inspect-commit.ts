import { run, type RunOptions } from "../../kit/exec.ts";
import type { Inspection, TreeLimits } from "../../ports/repositories.ts";
import type { GitCommands } from "./commands.ts";
import { createTreeScanner, mostPathBytes, type TreeScan } from "./tree-scan.ts";

/** git lists 200,000 entries in about a second; a tree that takes longer than this is refused. */
const listTimeoutMs = 20_000;
const readTimeoutMs = 10_000;
const longestMessage = 200;

interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Describes a commit and checks whether its tree is small enough to build. Never reads file contents. */
export async function inspectCommit(
  git: GitCommands,
  place: Place,
  commit: string,
  limits: TreeLimits,
): Promise<Inspection> {
  const [type, scan, description] = await Promise.all([
    run(git.objectType(commit), { ...place, timeoutMs: readTimeoutMs }),
    scanTree(git, place, commit, limits),
    run(git.describe(commit), { ...place, timeoutMs: readTimeoutMs }),
  ]);
  if (type.exitCode === null) return unreadable;
  if (type.stdout.trim() === "tag") return annotatedTag;
  if (type.stdout.trim() !== "commit") return notACommit;
  if (scan === null) return unreadable;
  if (scan.broken !== null) return tooLarge(scan.broken, limits);
  if (description.exitCode !== 0) return unreadable;
  const [author = "", message = ""] = description.stdout.trimEnd().split("\0");
  return { outcome: "fine", message: printable(message), author: printable(author), notes: submoduleNotes(scan) };
}

async function scanTree(git: GitCommands, place: Place, commit: string, limits: TreeLimits): Promise<TreeScan | null> {
  const scanner = createTreeScanner(limits);
  const enough = new AbortController();
  const onStdout = (chunk: Buffer) => {
    if (!enough.signal.aborted && !scanner.add(chunk)) enough.abort();
  };
  const options: RunOptions = {
    ...place,
    timeoutMs: listTimeoutMs,
    signal: enough.signal,
    maxOutputBytes: 1024,
    onStdout,
  };
  const ended = await run(git.listTree(commit), options);
  const scan = scanner.result();
  // git's recursion crashes on absurdly deep trees; like a timeout, that is the tree's fault.
  return scan.broken !== null || (ended.exitCode === 0 && !ended.timedOut) ? scan : null;
}

function submoduleNotes(scan: TreeScan): string[] {
  return scan.submodules.map(
    (path) => `Submodule ${printable(path)} is not fetched: its folder is empty in the build.`,
  );
}

function printable(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, longestMessage);
}

function tooLarge(broken: NonNullable<TreeScan["broken"]>, limits: TreeLimits): Inspection {
  const what = {
    entries: `has more than ${limits.entries} files and folders`,
    bytes: `unpacks to more than ${Math.floor(limits.bytes / 1024 / 1024)} MiB`,
    path: "has a path that is longer than 4096 bytes",
    paths: `has paths of more than ${mostPathBytes / 1024 / 1024} MiB together`,
  }[broken];
  const hint =
    "Take generated files, dependencies and data out of the commit (git rm --cached) and list them in .gitignore.";
  return { outcome: "refused", code: "source_too_large", summary: `The source ${what}.`, hint };
}

const notACommit: Inspection = {
  outcome: "refused",
  code: "not_a_commit",
  summary: "The pushed object is not a commit.",
  hint: "Push a branch: git push berth HEAD:main",
};

const annotatedTag: Inspection = {
  ...notACommit,
  summary: "The pushed object is an annotated tag, and a branch holds commits.",
  hint: "Push the commit that the tag names, such as: git push berth 'v1^{}:main'",
};

const unreadable: Inspection = {
  outcome: "refused",
  code: "source_unreadable",
  summary: "git cannot list the files of this commit in reasonable time.",
  hint: "Check the repository with git fsck and look for folders nested very deeply.",
};
