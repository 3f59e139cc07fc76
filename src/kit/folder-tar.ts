import { once } from "node:events";
import { statSync } from "node:fs";
import { Readable } from "node:stream";
import { run, start, type ExecResult } from "./exec.ts";
import { visible } from "./visible.ts";

/** Where restored files are put within a folder, beside the live ones; a stream of the folder leaves it out. */
export const restoredFolder = ".restored";

/** Where a restore of one path keeps what it replaces. */
export const keptFolder = (name: string) => `${restoredFolder}/${name}_replaced`;

/** `tar` could not read or write all files. Its message is `tar`'s own, for the folder's owner. */
export class FilesRefused extends Error {}

// By name, so that unchanged files make the same stream again. GNU's format keeps names of any length and has no access times.
const packing = ["--create", "--format=gnu", "--numeric-owner", "--sort=name", "--sparse", "--one-file-system"];

/**
 * Streams a folder as a tar archive, or returns null when it does not exist. The stream fails with `FilesRefused` when a file
 * cannot be read. `tar` runs as the folder's owner, who may rearrange it meanwhile so that a walk by root would read other files.
 */
export function readFolder(folder: string, signal: AbortSignal): Readable | null {
  const { uid, gid } = statSync(folder, { throwIfNoEntry: false }) ?? {};
  if (uid === undefined || gid === undefined) return null;
  const args = [...packing, `--exclude=./${restoredFolder}`, "--anchored", "--file=-", "."];
  return Readable.from(output({ folder, uid, gid, args }, signal), { objectMode: false });
}

interface Packing {
  readonly folder: string;
  readonly uid: number;
  readonly gid: number;
  readonly args: readonly string[];
}

async function* output({ folder, uid, gid, args }: Packing, signal: AbortSignal): AsyncGenerator<Buffer> {
  const tar = start({ file: "tar", args }, { cwd: folder, uid, gid, isBackground: true });
  const stop = () => tar.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  const closed = once(tar, "close") as Promise<[number | null]>;
  closed.catch(() => {});
  let said = "";
  tar.stderr.on("data", (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(0, saidLength)));
  try {
    signal.throwIfAborted();
    for await (const chunk of tar.stdout as AsyncIterable<Buffer>) yield chunk;
    const [exitCode] = await closed;
    signal.throwIfAborted();
    // 1: a file changed or disappeared while it was read.
    if (exitCode !== 0 && exitCode !== 1) throw refusal(said);
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}

/** Unpacks a stream of `readFolder` as the owner of `folder`, into `.restored/<name>` or itself. Rejects with `FilesRefused`. */
export async function writeFolder(
  folder: string,
  name: string | null,
  archive: Readable,
  signal: AbortSignal,
): Promise<void> {
  const { uid, gid } = statSync(folder, { throwIfNoEntry: false }) ?? {};
  if (uid === undefined || gid === undefined) throw noFolder();
  requireUnpacked(await run(unpacking(name), { cwd: folder, uid, gid, stdin: archive, signal }), archive, signal);
}

/** The command that unpacks a stream from stdin into `.restored/<name>` of its working folder, or without a name into that folder. */
export const unpacking = (name: string | null) => ({
  file: "/bin/sh",
  args: ["-c", script, "sh", name === null ? "." : `${restoredFolder}/${name}`],
});

// Read to the end, since `tar` may end once it has seen the mark of the archive's end, before the stream has ended.
const script = `[ ! -L ${restoredFolder} ] || { echo "${restoredFolder} is a link" >&2; exit 1; }
mkdir -p -- "$1" && tar --extract --preserve-permissions --file=- --directory="$1" && cat > /dev/null`;

/** Throws the stream's error, or `FilesRefused`, when a command of `unpacking` did not succeed. */
export function requireUnpacked(unpacked: ExecResult, archive: Readable, signal: AbortSignal): void {
  signal.throwIfAborted();
  if (archive.errored) throw archive.errored;
  if (unpacked.exitCode !== 0) throw refusal(unpacked.stderr);
}

export const noFolder = () => new FilesRefused("the project has no $STORAGE_DIR before its first deploy");

const saidLength = 300;

function refusal(said: string): FilesRefused {
  const line = said.split("\n").find((each) => each.trim() !== "") ?? "tar ended early";
  return new FilesRefused(visible(line).slice(0, saidLength));
}
