import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readJson, readTextOrEmpty } from "./whole-file.ts";

/** The folder with `bin`, `src` and `sql` that this program runs from: a release or a clone. */
export const ownFolder = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

export interface OwnVersion {
  /** Semantic version, such as 0.1.0. */
  readonly version: string;
  /** Hexadecimal commit id of 40 digits; null in a folder that is neither a release nor a clone. */
  readonly commit: string | null;
}

/** Returns what a folder of Berth contains: a release has a file that names it, a clone its `.git`. */
export function readVersion(folder: string = ownFolder): OwnVersion {
  const released = readJson<OwnVersion>(join(folder, "release.json"));
  if (released !== undefined) return released;
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string };
  return { version, commit: headOf(join(folder, ".git")) };
}

/** Returns version and commit for a person: `0.1.0 (1a2b3c4d)`. */
export function versionText({ version, commit }: OwnVersion = readVersion()): string {
  return commit === null ? version : `${version} (${commit.slice(0, 8)})`;
}

// Read without git, which a machine may lack and which takes 5 ms.
function headOf(gitFolder: string): string | null {
  const head = readTextOrEmpty(join(gitFolder, "HEAD")).trim();
  const ref = /^ref: (.+)$/.exec(head)?.[1];
  const packed = () =>
    readTextOrEmpty(join(gitFolder, "packed-refs"))
      .split("\n")
      .find((line) => line.endsWith(` ${ref}`))
      ?.slice(0, 40);
  const commit = ref === undefined ? head : readTextOrEmpty(join(gitFolder, ref)).trim() || (packed() ?? "");
  return /^[0-9a-f]{40}$/.test(commit) ? commit : null;
}
