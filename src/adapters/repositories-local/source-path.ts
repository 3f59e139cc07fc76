import { posix } from "node:path";
import { attempt } from "../../kit/attempt.ts";
import { trimLast } from "../../kit/trim-last.ts";

const longestPath = 4096;
const deepest = 200;

/** Normalises a file's path, relative to the source's root, to git's form. Throws `SourceRefused` if it could lead outside or into `.git`. */
export function sourcePath(given: string): string {
  const path = trimLast(given.replace(/^(?:\.\/+)+/, ""), "/");
  const parts = path.split("/");
  const invalid = (why: string) => new SourceRefused("invalid", `The path ${shown(given)} ${why}.`);
  if (path === "" || path === ".") throw invalid("names no file");
  if (path.startsWith("/")) throw invalid("is absolute; paths are relative to the source's root");
  if (path.includes("\0")) throw invalid("holds a NUL character");
  if (parts.includes("..")) throw invalid("leads out of the source");
  if (parts.some((part) => part === "" || part === ".")) throw invalid("is not in its shortest form");
  if (parts.some((part) => part.toLowerCase() === ".git"))
    throw invalid("lies in git's own folder; leave .git out, with tar by --exclude=.git");
  if (Buffer.byteLength(path) > longestPath || parts.length > deepest) throw invalid("is too long");
  return path;
}

/** Returns whether a path can name a file of a commit, spelled as git spells it. */
export function isSourcePath(path: string): boolean {
  return attempt(() => sourcePath(path) === path, false);
}

/** Throws `SourceRefused` for a symbolic link that leaves the source. */
export function requireInside(path: string, target: string): void {
  const lands = posix.normalize(posix.join(posix.dirname(path), target));
  if (target !== "" && !target.startsWith("/") && !target.includes("\0") && lands !== ".." && !lands.startsWith("../"))
    return;
  throw new SourceRefused("invalid", `The link ${shown(path)} leads out of the source, to ${shown(target)}.`);
}

/** Thrown for files that can't become a commit; the message says which and why. */
export class SourceRefused extends Error {
  readonly code: "invalid" | "too_large";
  constructor(code: SourceRefused["code"], summary: string) {
    super(summary);
    this.name = "SourceRefused";
    this.code = code;
  }
}

function shown(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}
