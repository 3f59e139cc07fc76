import { boundedCommand } from "../../kit/bounded-command.ts";
import { systemPath, type Command } from "../../kit/exec.ts";
import type { Quarantine } from "../../ports/repositories.ts";

/** The paths of git and prlimit; `prlimitBin` is null on a machine without it. */
export interface GitPrograms {
  readonly gitBin: string;
  readonly prlimitBin: string | null;
  readonly confine: (command: Command) => Command;
}

// The same limits as for git's server programs: well above what a repository within its limits needs, so that they only stop hostile ones.
const bounds = { addressSpaceBytes: 3 * 1024 ** 3, cpuSeconds: 600, processes: 4096 };

/** Returns the commands of this adapter as argument arrays, which contain no secrets. All of them read pushed data, so all have resource limits. */
export const gitCommands = ({ gitBin, prlimitBin, confine }: GitPrograms) => {
  const git = (...args: string[]): Command => confine(boundedCommand(prlimitBin, bounds, { file: gitBin, args }));
  return {
    /** Creates an empty bare repository without the example hooks of git's templates. */
    init: (dir: string) =>
      git("init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=main", dir),
    objectType: (oid: string) => git("cat-file", "-t", oid),
    /** Prints author and subject, separated by NUL. */
    describe: (commit: string) =>
      git("log", "-1", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--format=%an%x00%s", commit, "--"),
    /** Prints one record per entry, trees included, terminated by NUL: `<mode> <type> <oid> <padded size or ->`, a tab and the path. */
    listTree: (commit: string, path?: string) =>
      git("ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit, ...(path === undefined ? [] : ["--", path])),
    /** Prints the record of the entry at one path, in the same form. */
    listPath: (commit: string, path: string) => git("ls-tree", "-l", "-z", "--full-tree", commit, "--", path),
    archive: (commit: string, folder = "") =>
      git("archive", "--format=tar", folder === "" ? commit : `${commit}:${folder}`),
    changedPaths: (from: string, to: string) => git("diff-tree", "-r", "-z", "--name-only", from, to, "--"),
    ...comparingCommands(git),
    parse: (expression: string) =>
      git("rev-parse", "--verify", "--quiet", "--end-of-options", `${expression}^{commit}`),
    /** With `from`, updates only if the ref still has that value; forty zeros mean that the ref does not exist. */
    updateRef: (ref: string, to: string, from?: string) =>
      git("update-ref", "--no-deref", ref, to, ...(from === undefined ? [] : [from])),
    /** Reads one commit per line from stdin; fails if an object that they need, beyond what all refs contain, is missing. */
    checkConnected: () => git("rev-list", "--objects", "--quiet", "--stdin", "--not", "--all"),
    /** Reads a transaction from stdin, one command per NUL. */
    updateRefs: () => git("update-ref", "--no-deref", "-z", "--stdin"),
    /** Prints two numbers: the commits that only `from`, and that only `to` contains. */
    countCommits: (from: string, to: string) => git("rev-list", "--left-right", "--count", `${from}...${to}`, "--"),
    deleteRef: (ref: string) => git("update-ref", "--no-deref", "-d", ref),
    setHead: (ref: string) => git("symbolic-ref", "HEAD", ref),
    pack: () => git("gc", "--auto", "--quiet"),
    /** Stores a stream of blobs in one pack, and prints the id of each requested one. */
    importBlobs: () => git("fast-import", "--quiet", "--done"),
    readTree: (commit: string) => git("read-tree", commit),
    /** Changes the index from records of `<mode> <oid>`, a tab and the path, ended by NUL. git itself refuses `..`, `.git` and its disguises. */
    updateIndex: () =>
      git("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "update-index", "-z", "--index-info"),
    writeTree: () => git("write-tree"),
    /** Reads the message from stdin. */
    commitTree: (tree: string, parent: string | null) =>
      git("commit-tree", ...(parent === null ? [] : ["-p", parent]), "-F", "-", tree),
    /** Checks a commit and everything it reaches, as git checks a push. */
    check: (commit: string) => git("fsck", "--no-dangling", "--no-progress", commit),
    remoteHead: ({ url, branch }: { readonly url: string; readonly branch: string }) =>
      git("ls-remote", "--quiet", "--", url, `refs/heads/${branch}`),
    fetch: (url: string, commit: string) =>
      git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--", url, commit),
    ...bundleCommands(git),
    blob: (oid: string) => git("cat-file", "blob", oid),
  };
};

// Files above this size count as binary: git would hold both versions in memory.
const comparing = ["-c", "core.bigFileThreshold=4m"];
const plainly = ["--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"];

const comparingCommands = (git: (...args: string[]) => Command) => {
  const compare = (form: readonly string[], from: string, to: string, path: string | undefined) =>
    git(
      ...[...comparing, "--literal-pathspecs", "diff-tree", "-r", ...plainly, ...form, from, to, "--"],
      ...(path === undefined ? [] : [path]),
    );
  return {
    /** Prints records of the changed files, then records of their counted lines; all end with NUL. */
    countChanges: (from: string, to: string, path?: string) => compare(["-z", "--raw", "--numstat"], from, to, path),
    patch: (from: string, to: string, path?: string) => compare(["--patch", "--unified=3"], from, to, path),
    /** Prints side (`<` for those that only `from` has), id, author, time and subject, separated by U+001F; records end with NUL. */
    commitsBetween: (from: string, to: string, atMost: number) =>
      git(
        ...["log", "-z", "--left-right", "--no-show-signature", "--no-color", "--encoding=UTF-8"],
        ...["--format=%m%x1f%H%x1f%an%x1f%ct%x1f%s", `--max-count=${atMost}`, `${from}...${to}`, "--"],
      ),
  };
};

const bundleCommands = (git: (...args: string[]) => Command) => ({
  /** Prints one ref; nothing where there is none. */
  firstRef: () => git("for-each-ref", "--count=1", "--format=%(refname)"),
  /** Writes all refs, with all objects that they need, as they are at its beginning. */
  bundle: () => git("bundle", "create", "--quiet", "-", "--all"),
  bundlePart: (ref: string, since: string | null) =>
    git("bundle", "create", "--quiet", "-", ref, ...(since === null ? [] : [`^${since}`])),
  unbundle: (file: string) =>
    git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok", "--", file, "+refs/*:refs/*"),
});

export type GitCommands = ReturnType<typeof gitCommands>;

/** Returns git's complete environment: only our own configuration, and where other objects are, such as a push's quarantine. */
export function gitEnv(configFile: string, objects: Partial<Quarantine> | null = null): Record<string, string> {
  return {
    PATH: systemPath,
    HOME: "/nonexistent",
    LC_ALL: "C.UTF-8",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: configFile,
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_REPLACE_OBJECTS: "1",
    GIT_LITERAL_PATHSPECS: "1",
    ...objects,
  };
}

/** git refuses to update refs if it knows of a quarantine, even for the empty one that fast-import opens at its end. */
export function outsideQuarantine<T extends { readonly env: Readonly<Record<string, string>> }>(place: T): T {
  const { GIT_QUARANTINE_PATH: _, ...env } = place.env;
  return { ...place, env };
}
