import { boundedCommand } from "../../kit/bounded-command.ts";
import { systemPath, type Command } from "../../kit/exec.ts";
import type { Quarantine } from "../../ports/repositories.ts";

/** Where git and prlimit are; `prlimitBin` is null on a machine without it. */
export interface GitPrograms {
  readonly gitBin: string;
  readonly prlimitBin: string | null;
  /** Keeps a command apart from the machine. */
  readonly confine: (command: Command) => Command;
}

// As for git's server programs: well above what a repository within its limits needs, and what a hostile one asks for beyond is refused.
const bounds = { addressSpaceBytes: 3 * 1024 ** 3, cpuSeconds: 600, processes: 4096 };

/** The programs this adapter runs, as values: argument arrays without anything secret. All read what was pushed, so all are bounded. */
export const gitCommands = ({ gitBin, prlimitBin, confine }: GitPrograms) => {
  const git = (...args: string[]): Command => confine(boundedCommand(prlimitBin, bounds, { file: gitBin, args }));
  return {
    /** Makes an empty bare repository without the example hooks that git's templates bring. */
    init: (dir: string) =>
      git("init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=main", dir),
    objectType: (oid: string) => git("cat-file", "-t", oid),
    /** Author and subject, separated by NUL. */
    describe: (commit: string) =>
      git("log", "-1", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--format=%an%x00%s", commit, "--"),
    /** One record per entry, trees included, ended by NUL: `<mode> <type> <oid> <padded size or ->`, a tab and the path. */
    listTree: (commit: string, path?: string) =>
      git("ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit, ...(path === undefined ? [] : ["--", path])),
    archive: (commit: string, folder = "") =>
      git("archive", "--format=tar", folder === "" ? commit : `${commit}:${folder}`),
    changedPaths: (from: string, to: string) =>
      git("diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to, "--"),
    parse: (expression: string) =>
      git("rev-parse", "--verify", "--quiet", "--end-of-options", `${expression}^{commit}`),
    /** With `from`, only if the ref is still there; forty zeros stand for "does not exist". */
    updateRef: (ref: string, to: string, from?: string) =>
      git("update-ref", "--no-deref", ref, to, ...(from === undefined ? [] : [from])),
    deleteRef: (ref: string) => git("update-ref", "--no-deref", "-d", ref),
    setHead: (ref: string) => git("symbolic-ref", "HEAD", ref),
    pack: () => git("gc", "--auto", "--quiet"),
    /** Stores blobs that come as a stream, in one pack, and prints the id of each that is asked for. */
    importBlobs: () => git("fast-import", "--quiet", "--done"),
    readTree: (commit: string) => git("read-tree", commit),
    /** Changes the index by records `<mode> <oid>`, a tab and the path, ended by NUL. git itself refuses `..`, `.git` and its disguises. */
    updateIndex: () =>
      git("-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "update-index", "-z", "--index-info"),
    writeTree: () => git("write-tree"),
    /** With the message on stdin. */
    commitTree: (tree: string, parent: string | null) =>
      git("commit-tree", ...(parent === null ? [] : ["-p", parent]), "-F", "-", tree),
    /** Checks a commit and all it reaches as a push is checked. */
    check: (commit: string) => git("fsck", "--no-dangling", "--no-progress", commit),
    remoteHead: ({ url, branch }: { readonly url: string; readonly branch: string }) =>
      git("ls-remote", "--quiet", "--", url, `refs/heads/${branch}`),
    fetch: (url: string, commit: string) =>
      git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--", url, commit),
    blob: (oid: string) => git("cat-file", "blob", oid),
  };
};

export type GitCommands = ReturnType<typeof gitCommands>;

/** The exact environment of git here: our own configuration alone, and a push's quarantine when there is one. */
export function gitEnv(configFile: string, quarantine: Quarantine | null = null): Record<string, string> {
  return {
    PATH: systemPath,
    HOME: "/nonexistent",
    LC_ALL: "C.UTF-8",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: configFile,
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_REPLACE_OBJECTS: "1",
    ...quarantine,
  };
}
