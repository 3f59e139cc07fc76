import { once } from "node:events";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { run, runOk, signalTo, start, type Command, type ExecOptions, type RunOptions } from "../../kit/exec.ts";
import type { NewCommit } from "../../ports/repositories.ts";
import type { GitCommands } from "./commands.ts";
import { readArchive } from "./read-archive.ts";
import { SourceRefused, sourcePath } from "./source-path.ts";
import { mostPathBytes } from "./tree-scan.ts";

type Mode = "100644" | "100755" | "120000";

/** The new content of a path: a mode, and the index of an imported blob. */
interface Planned {
  readonly mode: Mode;
  readonly blob: number;
}

const importTimeoutMs = 240_000;

/** Creates a commit in the quarantine of `place`, using that quarantine's own index. Throws `SourceRefused`. */
export async function writeCommit(git: GitCommands, place: RunOptions, commit: NewCommit): Promise<string> {
  const before = commit.base === null ? [] : await entriesOf(git, place, commit.base);
  const removed = removals(commit.removed, before);
  const blobs = startBlobImport(git.importBlobs(), place);
  const timer = setTimeout(blobs.abort, importTimeoutMs);
  try {
    const planned = await plan(blobs, commit, new Map(before.map(({ path, mode }) => [path, mode])));
    const ids = await blobs.finish();
    await fillIndex(git, place, { base: commit.base, removed, planned, ids });
  } catch (error) {
    blobs.abort();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  const tree = (await runOk(git.writeTree(), place)).stdout.trim();
  const id = await commitTree(git, place, { ...commit, tree });
  await check(git, place, id, before);
  return id;
}

async function plan(
  blobs: BlobImport,
  { content, limits }: NewCommit,
  modes: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, Planned>> {
  const planned = new Map<string, Planned>();
  if ("files" in content) {
    for (const { path: given, content: bytes, executable } of content.files) {
      const path = sourcePath(given);
      const isExecutable = executable ?? modes.get(path) === "100755";
      const blob = await blobs.add(bytes.length, Readable.from([bytes]));
      planned.set(path, { mode: isExecutable ? "100755" : "100644", blob });
    }
    return planned;
  }
  let bytes = 0;
  let pathBytes = 0;
  const countPath = (path: string) => {
    pathBytes += Buffer.byteLength(path);
    if (pathBytes > mostPathBytes)
      throw new SourceRefused(
        "too_large",
        `The paths of the archive's files take more than ${mostPathBytes / 1024 / 1024} MiB together.`,
      );
  };
  await readArchive(content.archive, limits, {
    async file({ path, mode, sizeBytes, content: parts }) {
      countPath(path);
      bytes += sizeBytes;
      if (bytes > limits.bytes)
        throw new SourceRefused(
          "too_large",
          `The source unpacks to more than ${Math.floor(limits.bytes / 1024 / 1024)} MiB.`,
        );
      planned.set(path, { mode, blob: await blobs.add(sizeBytes, parts) });
    },
    hardLink(path, target) {
      countPath(path);
      const same = planned.get(target);
      if (same === undefined)
        throw new SourceRefused(
          "invalid",
          `The link ${JSON.stringify(path)} names a file that the archive does not contain.`,
        );
      planned.set(path, same);
    },
  });
  if (planned.size === 0) throw new SourceRefused("invalid", "The archive contains no file.");
  return planned;
}

export interface Entry {
  readonly mode: string;
  readonly oid: string;
  readonly sizeBytes: number;
  readonly path: string;
}

/** Returns all files and links of a commit, or those below one path. */
async function entriesOf(git: GitCommands, place: RunOptions, commit: string, path?: string): Promise<Entry[]> {
  const listed = await runOk(git.listTree(commit, path), { ...place, maxOutputBytes: 256 * 1024 * 1024 });
  return listed.stdout.split("\0").flatMap(entryOf);
}

function entryOf(record: string): Entry[] {
  const [, mode = "", type = "tree", oid = "", size = "", path = ""] =
    /^(\d+) (\w+) (\w+) +(\S+)\t([^]+)$/.exec(record) ?? [];
  return type === "tree" ? [] : [{ mode, oid, path, sizeBytes: size === "-" ? 0 : Number(size) }];
}

/** Returns a file's content; null when there is no such file or it is larger. */
export async function fileAt(
  git: GitCommands,
  place: RunOptions,
  { commit, path, maxBytes }: { readonly commit: string; readonly path: string; readonly maxBytes: number },
): Promise<Buffer | null> {
  const found = await entryAt(git, place, commit, path);
  if (found === undefined || !found.mode.startsWith("100") || found.sizeBytes > maxBytes) return null;
  const parts: Buffer[] = [];
  const onStdout = (chunk: Buffer) => void parts.push(chunk);
  await runOk(git.blob(found.oid), { ...place, onStdout });
  return Buffer.concat(parts);
}

/** Returns the file or link at exactly this path; undefined when there is none. Lists nothing of a folder. */
async function entryAt(git: GitCommands, place: RunOptions, commit: string, path: string) {
  const listed = await runOk(git.listPath(commit, path), place);
  return listed.stdout
    .split("\0")
    .flatMap(entryOf)
    .find((entry) => entry.path === path);
}

/** Returns the first files and links of a commit, or of those below one path. Reads no more of git's list than these. */
export async function firstEntries(
  git: GitCommands,
  place: RunOptions,
  { commit, path, limit }: { readonly commit: string; readonly path: string | undefined; readonly limit: number },
): Promise<readonly Entry[]> {
  const found: Entry[] = [];
  const enough = new AbortController();
  const decoder = new StringDecoder("utf8");
  let rest = "";
  const onStdout = (chunk: Buffer) => {
    if (enough.signal.aborted) return;
    const records = (rest + decoder.write(chunk)).split("\0");
    rest = records.pop() ?? "";
    for (const record of records) found.push(...entryOf(record));
    if (found.length >= limit) enough.abort();
  };
  const { signal } = enough;
  const ended = await run(git.listTree(commit, path), { ...place, signal, maxOutputBytes: 1024, onStdout });
  if (!signal.aborted && (ended.exitCode !== 0 || ended.timedOut))
    throw new Error(`git could not list a commit: ${ended.stderr.trim().slice(-500)}`);
  return found.slice(0, limit);
}

/** Returns the paths to delete: the given files, and all files in given folders. */
function removals(named: readonly string[], before: readonly Entry[]): readonly string[] {
  return named.flatMap((given) => {
    const path = sourcePath(given);
    const gone = before.filter((entry) => entry.path === path || entry.path.startsWith(`${path}/`));
    if (gone.length === 0) throw new SourceRefused("invalid", `There is no file ${JSON.stringify(path)} to delete.`);
    return gone.map((entry) => entry.path);
  });
}

interface Filling {
  readonly base: string | null;
  readonly removed: readonly string[];
  readonly planned: ReadonlyMap<string, Planned>;
  readonly ids: readonly string[];
}

const nothing = "0".repeat(40);

async function fillIndex(git: GitCommands, place: RunOptions, { base, removed, planned, ids }: Filling): Promise<void> {
  if (base !== null) await runOk(git.readTree(base), place);
  const records = function* () {
    for (const path of removed) yield `0 ${nothing}\t${path}\0`;
    for (const [path, { mode, blob }] of planned) yield `${mode} ${ids[blob]}\t${path}\0`;
  };
  const done = await run(git.updateIndex(), { ...place, stdin: Readable.from(records(), { objectMode: false }) });
  if (done.exitCode !== 0) throw new Error(`git could not create the index: ${done.stderr.trim().slice(-500)}`);
  // git skips paths that it does not accept, and continues.
  const path = /^Ignoring path (.+)/m.exec(done.stderr)?.[1];
  if (path !== undefined)
    throw new SourceRefused("invalid", `git does not accept the path ${JSON.stringify(path.slice(0, 200))}.`);
}

async function commitTree(
  git: GitCommands,
  place: RunOptions,
  { tree, parent, message, author }: NewCommit & { readonly tree: string },
): Promise<string> {
  const name = author.replace(/[\p{Cc}<>]/gu, " ").trim() || "Berth";
  const who = { name, email: "source@berth.invalid" };
  const env = {
    ...place.env,
    ...{ GIT_AUTHOR_NAME: who.name, GIT_AUTHOR_EMAIL: who.email },
    ...{ GIT_COMMITTER_NAME: who.name, GIT_COMMITTER_EMAIL: who.email },
  };
  return (await runOk(git.commitTree(tree, parent), { ...place, env, stdin: message })).stdout.trim();
}

/** Checks the commit for files that attack those who clone it, as git checks every push. Only `.gitmodules` can contain such an attack here. */
async function check(git: GitCommands, place: RunOptions, commit: string, before: readonly Entry[]): Promise<void> {
  const known = new Set(before.map(({ path }) => path));
  const after = await entriesOf(git, place, commit);
  if (!after.some(({ path }) => /(?:^|\/)\.gitmodules$/i.test(path) && !known.has(path))) return;
  const checked = await run(git.check(commit), place);
  if (checked.exitCode === 0) return;
  const why = checked.stderr.trim().split("\n")[0] ?? "";
  throw new SourceRefused("invalid", `git refuses these files: ${why.slice(0, 200)}`);
}

/** Stores files as git blobs in one pass, without temporary copies on disk. */
type BlobImport = ReturnType<typeof startBlobImport>;

/** Starts `git fast-import`, which writes the blobs to the object folder of `place`. */
function startBlobImport(command: Command, place: ExecOptions) {
  const child = start(command, place);
  const ids: string[] = [];
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => void (errors = (errors + chunk.toString()).slice(-2000)));
  createInterface({ input: child.stdout }).on("line", (line) => void ids.push(line));
  const closed = once(child, "close") as Promise<[number | null]>;
  closed.catch(() => {});
  let broken: Error | undefined;
  child.stdin.on("error", (error) => void (broken ??= error));
  let count = 0;

  const write = async (chunk: string | Uint8Array) => {
    if (broken !== undefined) throw failed(errors || broken.message);
    if (!child.stdin.write(chunk)) await Promise.race([once(child.stdin, "drain").catch(() => {}), closed]);
  };
  return {
    /** Adds a blob; resolves with its index in the result of `finish`. */
    async add(sizeBytes: number, content: AsyncIterable<Uint8Array>) {
      count += 1;
      await write(`blob\nmark :${count}\ndata ${sizeBytes}\n`);
      for await (const chunk of content) await write(chunk);
      await write(`\nget-mark :${count}\n`);
      return count - 1;
    },
    /** Resolves with the ids of all blobs once they are stored. */
    async finish() {
      child.stdin.end("done\n");
      const [code] = await closed;
      if (code !== 0 || ids.length !== count) throw failed(errors);
      return ids;
    },
    /** Kills git and discards what was added. */
    // Kill the whole process group: a sandbox killed during its setup leaves its inner process behind, which holds our pipes open.
    abort: () => signalTo(child, "SIGKILL", place),
  };
}

function failed(why: string): Error {
  return new Error(`git fast-import failed: ${why.trim()}`);
}
