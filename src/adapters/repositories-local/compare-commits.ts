import { run, type ExecResult, type RunOptions } from "../../kit/exec.ts";
import type { Comparison, ChangedFile, ComparisonLimits } from "../../ports/repositories.ts";
import type { GitCommands } from "./commands.ts";
import { createPatchReader, type FileLines } from "./patch-reader.ts";
import { isSourcePath } from "./source-path.ts";

interface Between {
  readonly from: string;
  readonly to: string;
  /** Only this file. */
  readonly path?: string | undefined;
}

/** Compares two commits that exist. What the limits cut off is missing, and the result says so; none of it is an error. */
export async function compareCommits(
  git: GitCommands,
  place: RunOptions,
  { from, to, path }: Between,
  limits: ComparisonLimits,
): Promise<Comparison> {
  if (path !== undefined && !isSourcePath(path)) return { commits: [], files: [], complete: true };
  const most = { ...place, timeoutMs: limits.timeoutMs, maxOutputBytes: 1024 };
  const [logged, counted, read] = await Promise.all([
    readUpTo(mostLoggedBytes, (onStdout, signal) =>
      run(git.commitsBetween(from, to, limits.commits + 1), { ...most, onStdout, signal }),
    ),
    readUpTo(mostListedBytes, (onStdout, signal) =>
      run(git.countChanges(from, to, path), { ...most, onStdout, signal }),
    ),
    readPatch(limits, (onStdout, signal) => run(git.patch(from, to, path), { ...most, onStdout, signal })),
  ]);
  const commits = commitsIn(logged.text);
  const all = changesIn(counted.text);
  const files = all.slice(0, limits.files);
  const isWhole = logged.isWhole && counted.isWhole && read.isWhole;
  return {
    commits: commits.slice(0, limits.commits),
    files: withLines(files, read.files),
    complete: isWhole && commits.length <= limits.commits && all.length <= limits.files,
  };
}

const mostLoggedBytes = 4 * 1024 * 1024;
// Paths of a tree may take 32 MiB, and each is printed twice.
const mostListedBytes = 80 * 1024 * 1024;

type Running = (onStdout: (chunk: Buffer) => void, signal: AbortSignal) => Promise<ExecResult>;

async function readUpTo(mostBytes: number, running: Running) {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const enough = new AbortController();
  const ended = await running((chunk) => {
    bytes += chunk.length;
    if (bytes > mostBytes) enough.abort();
    else chunks.push(chunk);
  }, enough.signal);
  return { text: Buffer.concat(chunks).toString("utf8"), isWhole: isDone(ended) && bytes <= mostBytes };
}

async function readPatch(limits: ComparisonLimits, running: Running) {
  const reader = createPatchReader(limits);
  const enough = new AbortController();
  const ended = await running((chunk) => {
    if (!enough.signal.aborted && !reader.add(chunk)) enough.abort();
  }, enough.signal);
  return { files: reader.end(isDone(ended)), isWhole: isDone(ended) };
}

function isDone({ exitCode, timedOut }: ExecResult): boolean {
  return exitCode === 0 && !timedOut;
}

function commitsIn(text: string): Comparison["commits"] {
  return text
    .split("\0")
    .filter((record) => record.split("\u001f").length >= 5)
    .map((record) => {
      const [side, commit = "", author = "", at = "", ...message] = record.split("\u001f");
      const words = { author: author.slice(0, 200), message: message.join(" ").slice(0, 500) };
      return { side: side === "<" ? "removed" : "added", commit, ...words, at: timeOf(at) };
    });
}

// The times of a commit are what its author's machine said.
const lastSecond = Date.parse("9999-12-31T23:59:59Z") / 1000;

function timeOf(seconds: string): Date {
  return new Date(Math.min(Number(seconds) || 0, lastSecond) * 1000);
}

type Counted = Omit<ChangedFile, "lines" | "cut"> & { readonly isRetyped: boolean };

/** Reads records of `:<modes> <ids> <status>` and path, then of `<added>`, tab, `<removed>`, tab and path; all end with NUL. */
function changesIn(text: string): Counted[] {
  const parts = text.split("\0");
  // What follows the last NUL was cut off, or is empty.
  parts.pop();
  const found = new Map<string, Counted>();
  for (let index = 0; index < parts.length; index += 1) {
    const part = parts[index] ?? "";
    if (part.startsWith(":")) {
      const letter = part.at(-1) ?? "";
      const path = parts[(index += 1)];
      if (path === undefined) break;
      const status = letter === "A" ? "added" : letter === "D" ? "deleted" : "changed";
      found.set(path, { path, status, added: null, removed: null, binary: false, isRetyped: letter === "T" });
      continue;
    }
    const [added = "", removed = "", ...rest] = part.split("\t");
    const of = found.get(rest.join("\t"));
    if (of === undefined) continue;
    const counts = added === "-" ? { binary: true } : { added: Number(added), removed: Number(removed) };
    found.set(of.path, { ...of, ...counts });
  }
  return [...found.values()];
}

/** git prints both lists in the same order; a file that became a link, or the other way round, is in the second one twice. */
function withLines(files: readonly Counted[], sections: readonly FileLines[]): ChangedFile[] {
  let next = 0;
  return files.map(({ isRetyped, ...file }) => {
    const own = sections.slice(next, (next += isRetyped ? 2 : 1));
    const isThere = own.length === (isRetyped ? 2 : 1) && own.every(({ lines }) => lines !== null);
    if (file.binary || !isThere) return { ...file, lines: null, cut: !file.binary };
    return { ...file, lines: own.map(({ lines }) => lines).join(""), cut: own.some(({ cut }) => cut) };
  });
}
