import { statSync } from "node:fs";
import { run } from "./exec.ts";

export interface FolderEntry {
  readonly name: string;
  readonly kind: "file" | "folder" | "link" | "other";
  readonly size_bytes: number;
  readonly modified_at: string;
}

export interface FolderPlace {
  /** Its owner is who looks, so that links lead nowhere that the owner may not read. */
  readonly folder: string;
  /** Below it; empty for itself. */
  readonly path: string;
  readonly offset: number;
  /** How many entries, or bytes. */
  readonly count: number;
}

/** Lists a folder below `folder` by name, without following links; undefined if there is none. */
export async function listBelow(place: FolderPlace): Promise<readonly FolderEntry[] | undefined> {
  return entriesOf(await look(place, list, place.path));
}

/** Returns what a path below `folder` is, without following links; undefined if there is nothing. */
export async function statBelow({
  folder,
  path,
}: Pick<FolderPlace, "folder" | "path">): Promise<FolderEntry | undefined> {
  const found = await look({ folder, path, offset: 0, count: 1 }, stat, ...splitPath(path));
  return entriesOf(found)?.[0];
}

function entriesOf(found: Buffer | undefined): FolderEntry[] | undefined {
  return found
    ?.toString()
    .split("\0")
    .slice(0, -1)
    .map((line) => {
      const [name = "", kind = "", bytes = "", seconds = ""] = line.split("/");
      const modified_at = new Date(Number.parseFloat(seconds) * 1000).toISOString();
      return { name, kind: kinds[kind] ?? "other", size_bytes: Number(bytes), modified_at };
    });
}

/** Reads a part of a file below `folder`, without following links; undefined if there is none. */
export function readBelow(place: FolderPlace): Promise<Buffer | undefined> {
  return look(place, read, ...splitPath(place.path));
}

function splitPath(path: string): [parent: string, name: string] {
  const [, parent = "", name = ""] = /^(?:(.*)\/)?([^/]*)$/s.exec(path) ?? [];
  return [parent, name];
}

const kinds: Readonly<Record<string, FolderEntry["kind"]>> = { f: "file", d: "folder", l: "link" };
const missing = 66;
const timeoutMs = 20_000;

// Once entered, a folder stays the same one, whatever its owner puts in its place; where it is shows whether a link led there.
const enter = `root=$(pwd -P) && cd -P -- "./$1" 2>/dev/null && [ "$(pwd -P; echo .)" = "$root\${1:+/$1}
." ] || exit ${missing}`;
const list = `${enter}; find . -mindepth 1 -maxdepth 1 -printf '%f/%y/%s/%T@\\0' | LC_ALL=C sort -z | tail -z -n "+$(($3 + 1))" | head -z -n "$4"`;
const stat = `${enter}; [ -e "./$2" ] || [ -L "./$2" ] || exit ${missing}; exec find "./$2" -maxdepth 0 -printf '%f/%y/%s/%T@\\0'`;
const read = `${enter}; [ -f "./$2" ] && [ ! -L "./$2" ] || exit ${missing}
exec dd status=none iflag=nofollow,nonblock,fullblock,skip_bytes,count_bytes bs=64K skip="$3" count="$4" if="./$2"`;

async function look(place: FolderPlace, script: string, path: string, name = ""): Promise<Buffer | undefined> {
  const { uid, gid } = statSync(place.folder, { throwIfNoEntry: false }) ?? {};
  if (uid === undefined || gid === undefined) return undefined;
  const chunks: Buffer[] = [];
  const command = { file: "/bin/sh", args: ["-c", script, "sh", path, name, `${place.offset}`, `${place.count}`] };
  const onStdout = (chunk: Buffer) => void chunks.push(chunk);
  const result = await run(command, { cwd: place.folder, uid, gid, timeoutMs, onStdout, isBackground: true });
  if (result.exitCode === missing) return undefined;
  if (result.exitCode !== 0) throw new Error(`the folder could not be read: ${result.stderr.slice(0, 300)}`);
  return Buffer.concat(chunks);
}
