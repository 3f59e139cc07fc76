import type { Command } from "./exec.ts";
import { FilesRefused } from "./folder-tar.ts";
import { visible } from "./visible.ts";

export interface Move {
  readonly from: string;
  readonly to: string;
}

/** `missing`: there is nothing to move. `taken`: something is there already, which stays. */
export type Moved = "moved" | "missing" | "taken";

/**
 * The command that moves a file or folder below its working folder, into folders that it creates. It replaces nothing, and refuses a way
 * that leads over a link.
 */
export const moving = ({ from, to }: Move): Command => ({
  file: "/bin/sh",
  args: ["-c", script, "sh", from, parentOf(from), to, parentOf(to)],
});

const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

const codes: Readonly<Record<number, Moved>> = { 0: "moved", 66: "missing", 67: "taken" };
const script = `root=$(pwd -P)
there() { [ -e "./$1" ] || [ -L "./$1" ]; }
straight() { (cd -P -- "./$1" && [ "$(pwd -P)" = "$root\${1:+/$1}" ]); }
there "$1" || exit 66
straight "$2" || exit 68
! there "$3" || exit 67
mkdir -p -- "./$4" && straight "$4" || exit 68
mv -nT -- "./$1" "./$3" || exit 69
! there "$1" || exit 67`;

/** Returns what such a command did, by its exit code, or throws `FilesRefused`. */
export function movedBy(code: number | null, stderr: string, { from, to }: Move): Moved {
  const known = codes[code ?? -1];
  if (known !== undefined) return known;
  const said =
    code === 68 ? "the way leads over a link or a file" : stderr.trim().slice(0, 200) || `mv ended with ${code}`;
  throw new FilesRefused(visible(`${from} could not be moved to ${to}: ${said}`));
}
