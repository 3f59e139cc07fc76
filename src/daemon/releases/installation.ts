import { existsSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { attempt } from "../../kit/attempt.ts";
import { ownFolder } from "../../kit/own-version.ts";
import { processIds } from "../../kit/processes.ts";
import { syncFolder } from "../../kit/whole-file.ts";

/** Where install.sh put Berth: `PREFIX/versions/VERSION` side by side, and the link `PREFIX/current` to the one that is started. */
export interface Installation {
  readonly prefix: string;
  readonly versions: string;
}

/** Returns the installation that a folder of Berth belongs to; null for a clone. */
export function installationOf(folder: string = ownFolder): Installation | null {
  const versions = dirname(folder);
  const isInstalled = basename(versions) === "versions" && existsSync(join(folder, "release.json"));
  return isInstalled ? { prefix: dirname(versions), versions } : null;
}

/** Returns the path of a program of `bin`, which stays valid when the version changes. */
export function programPath(name: "berth" | "berthd"): string {
  const installation = installationOf();
  return join(installation === null ? ownFolder : join(installation.prefix, "current"), "bin", name);
}

/** Lists the installed versions, unordered. Folders of interrupted installations are left out. */
export function installedVersions({ versions }: Installation): readonly string[] {
  return readdirSync(versions).filter(
    (name) => !name.startsWith(".") && existsSync(join(versions, name, "release.json")),
  );
}

/** Returns the version that the next start uses. */
export function currentVersion({ prefix }: Installation): string {
  return basename(readlinkSync(join(prefix, "current")));
}

/** Makes a version the one that the next start uses, in one step, which a power failure then does not undo. Idempotent. */
export function setCurrent({ prefix, versions }: Installation, version: string): void {
  syncFolder(versions);
  const draft = join(prefix, ".current.new");
  rmSync(draft, { force: true });
  symlinkSync(join("versions", version), draft);
  renameSync(draft, join(prefix, "current"));
  syncFolder(prefix);
}

/** Counts the running processes of each version: by their program, and by the files that their command lines name. */
export function processesOf({ versions }: Installation): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const pid of processIds()) {
    const names = new Set(
      [...`${programOf(pid)}\0${commandLineOf(pid)}`.split(`${versions}/`).slice(1)].map(
        (rest) => /^[^/\0]*/.exec(rest)?.[0] ?? "",
      ),
    );
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}

/** Removes the versions that are neither among `kept` nor current, and from which nothing runs. */
export function removeUnused(installation: Installation, kept: readonly string[]): void {
  const used = new Set([...kept, currentVersion(installation), ...processesOf(installation).keys()]);
  for (const name of installedVersions(installation))
    if (!used.has(name)) rmSync(join(installation.versions, name), { recursive: true, force: true });
}

// A process may end meanwhile, or be another user's.
function programOf(pid: number): string {
  return attempt(() => readlinkSync(`/proc/${pid}/exe`), "");
}

function commandLineOf(pid: number): string {
  return attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"), "");
}
