import type { Command } from "./exec.ts";
import { FilesRefused } from "./folder-tar.ts";
import { visible } from "./visible.ts";

export interface Move {
  readonly from: string;
  readonly to: string;
  /** Where what is at `to` goes; without it, that is not replaced. */
  readonly kept?: string;
}

/** `missing`: there is nothing to move. `taken`: something is there already, which stays. */
export type Moved = "moved" | "replaced" | "missing" | "taken";

/**
 * The command that moves a file or folder below its working folder, into folders that it creates. It overwrites nothing, and refuses a way
 * that leads over a link. A file that a file replaces leaves no instant at which nothing is there.
 */
export const moving = ({ from, to, kept = "" }: Move): Command => ({
  file: "/bin/sh",
  args: ["-c", script, "sh", from, parentOf(from), to, parentOf(to), kept, parentOf(kept)],
});

const parentOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));

const codes: Readonly<Record<number, Moved>> = { 0: "moved", 65: "replaced", 66: "missing", 67: "taken" };
// A folder has no second name, so what it replaces, or what replaces it, moves away first. `same`: an earlier move ended after its `ln`.
const script = `root=$(pwd -P)
there() { [ -e "./$1" ] || [ -L "./$1" ]; }
straight() { (cd -P -- "./$1" && [ "$(pwd -P; echo .)" = "$root\${1:+/$1}
." ]); }
same() { [ "./$1" -ef "./$2" ] && [ ! -L "./$1" ] && [ ! -L "./$2" ]; }
there "$1" || exit 66
straight "$2" || exit 68
mkdir -p -- "./$4" && straight "$4" || exit 68
done=0
if there "$3"; then
  ! same "$1" "$3" || exec rm -- "./$1"
  [ -n "$5" ] || exit 67
  mkdir -p -- "./$6" && straight "$6" && ! there "$5" || exit 68
  done=65
  if { [ ! -d "./$1" ] || [ -L "./$1" ]; } && ln -PT -- "./$3" "./$5" 2>/dev/null; then
    mv -fT -- "./$1" "./$3" && exit $done
    ! same "$3" "$5" || rm -- "./$5"
    exit 69
  fi
  mv -nT -- "./$3" "./$5" || exit 69
fi
mv -nT -- "./$1" "./$3" && ! there "$1" && exit $done
! there "$3" || exit 67
[ $done = 0 ] || mv -nT -- "./$5" "./$3"
exit 69`;

/** What a command ended with; `missing` also stands for a folder that does not exist. */
export interface Ended {
  readonly exitCode: number | null;
  readonly stderr: string;
}
export const missing: Ended = { exitCode: 66, stderr: "" };

/** Returns what such a command did, by its exit code, or throws `FilesRefused`. */
export function movedBy({ exitCode: code, stderr }: Ended, { from, to }: Move): Moved {
  const known = codes[code ?? -1];
  if (known !== undefined) return known;
  const said =
    code === 68 ? "the way leads over a link or a file" : stderr.trim().slice(0, 200) || `mv ended with ${code}`;
  throw new FilesRefused(visible(`${from} could not be moved to ${to}: ${said}`));
}

/** The command that deletes a file or folder below its working folder. */
export const removing = (path: string): Command => ({
  file: "/bin/sh",
  args: ["-c", `[ -e "$1" ] || [ -L "$1" ] || exit ${missing.exitCode}; rm -rf -- "$1"`, "sh", path],
});

/** Returns whether such a command found something to delete. */
export function removedBy({ exitCode, stderr }: Ended): boolean {
  if (exitCode === 0 || exitCode === missing.exitCode) return exitCode === 0;
  throw new Error(`the files could not be deleted: ${stderr.slice(0, 300) || `the command ended with ${exitCode}`}`);
}
