import { systemPath, type Command } from "../../kit/exec.ts";
import type { Quarantine } from "../../ports/repositories.ts";

/** The programs this adapter runs, as values: argument arrays without anything secret. */
export const gitCommands = (gitBin: string) => ({
  /** Makes an empty bare repository without the example hooks that git's templates bring. */
  init: (dir: string): Command => ({
    file: gitBin,
    args: ["init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=main", dir],
  }),
  objectType: (oid: string): Command => ({ file: gitBin, args: ["cat-file", "-t", oid] }),
  /** Author and subject, separated by NUL. */
  describe: (commit: string): Command => ({
    file: gitBin,
    args: ["log", "-1", "--no-show-signature", "--no-color", "--encoding=UTF-8", "--format=%an%x00%s", commit, "--"],
  }),
  /** One record per entry, trees included, ended by NUL: `<mode> <type> <oid> <padded size or ->`, a tab and the path. */
  listTree: (commit: string): Command => ({
    file: gitBin,
    args: ["ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit],
  }),
  /** Contents of the objects named on stdin, one id a line. */
  readObjects: (): Command => ({ file: gitBin, args: ["cat-file", "--batch"] }),
  archive: (commit: string): Command => ({ file: gitBin, args: ["archive", "--format=tar", commit] }),
  parse: (expression: string): Command => ({
    file: gitBin,
    args: ["rev-parse", "--verify", "--quiet", "--end-of-options", `${expression}^{commit}`],
  }),
  /** With `from`, only if the ref is still there; forty zeros stand for "does not exist". */
  updateRef: (ref: string, to: string, from?: string): Command => ({
    file: gitBin,
    args: ["update-ref", "--no-deref", ref, to, ...(from === undefined ? [] : [from])],
  }),
  deleteRef: (ref: string): Command => ({ file: gitBin, args: ["update-ref", "--no-deref", "-d", ref] }),
  setHead: (ref: string): Command => ({ file: gitBin, args: ["symbolic-ref", "HEAD", ref] }),
  pack: (): Command => ({ file: gitBin, args: ["gc", "--auto", "--quiet", "--no-detach"] }),
});

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
