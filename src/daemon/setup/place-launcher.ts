import { mkdir } from "node:fs/promises";
import { dirname, relative } from "node:path";
import { replaceFileAsync } from "../../kit/whole-file.ts";

/**
 * Writes a script that runs an unpacked program with its libraries. Paths are relative to the script, so that the data folder can be moved.
 */
export async function placeLauncher(launcher: string, program: string, libraries: readonly string[]): Promise<void> {
  const here = '"$(dirname -- "$0")"';
  const from = dirname(launcher);
  const text = [
    "#!/bin/sh",
    `LD_LIBRARY_PATH=${libraries.map((folder) => `${here}/${relative(from, folder)}`).join(":")}`,
    "export LD_LIBRARY_PATH",
    `exec ${here}/${relative(from, program)} "$@"`,
    "",
  ].join("\n");
  await mkdir(from, { recursive: true });
  await replaceFileAsync(launcher, text, { mode: 0o755 });
}

/** Returns the folders below `unpacked` in which Debian's packages place libraries. */
export function libraryFolders(unpacked: string): readonly string[] {
  const triplet = `${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu`;
  return [`${unpacked}/usr/lib/${triplet}`, `${unpacked}/lib/${triplet}`];
}
