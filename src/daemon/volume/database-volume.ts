import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { runOk } from "../../kit/exec.ts";
import { syncFolder } from "../../kit/sync-disk.ts";
import { StartRefused, pathsIn } from "../config.ts";

/** The file with the file system of the databases, and what stands beside it while it is made or taken away. */
export function volumeFiles(dataDir: string) {
  const { databases } = pathsIn(dataDir);
  return {
    databases,
    volume: `${databases}.xfs`,
    /** Not complete yet. */
    draft: `${databases}.draft`,
    /** The folder from which the volume was filled, or what was in its place later. */
    before: `${databases}.before`,
    /** A complete copy of what is in the volume, which counts once the volume's file is gone. */
    after: `${databases}.after`,
  };
}

/**
 * Mounts the volume of databases where the data folder has one, and ends what a killed `berthd volume` left: whether the volume's file is there
 * decides which copy counts. Throws `StartRefused` if it cannot be mounted, as databases would seem to be lost.
 */
export async function mountVolume(dataDir: string): Promise<void> {
  const { databases, volume, before, after } = volumeFiles(dataDir);
  if (!existsSync(volume)) return existsSync(after) ? putBack(dataDir) : undefined;
  if (isMounted(databases)) return;
  if (existsSync(databases) && readdirSync(databases).length > 0) {
    if (existsSync(before)) throw new StartRefused(`Both ${databases} and ${before} contain databases. Move one away.`);
    renameSync(databases, before);
  }
  mkdirSync(databases, { recursive: true, mode: 0o700 });
  await attach(volume, databases);
}

/** Puts the databases that were copied out of a volume into its place. */
export async function putBack(dataDir: string): Promise<void> {
  const { databases, after } = volumeFiles(dataDir);
  if (existsSync(databases)) rmdirSync(databases);
  renameSync(after, databases);
  await syncFolder(dirname(databases));
}

export async function attach(volume: string, folder: string): Promise<void> {
  try {
    // XFS refuses a second device with the same content, and a process with mounts of its own may still hold the one from before.
    const [held] = await losetup("--associated", volume, "--noheadings", "--output", "NAME");
    // Without a second cache of what the databases and XFS cache themselves.
    const [device = ""] = held ? [held] : await losetup("--find", "--show", "--direct-io=on", volume);
    try {
      await runOk({ file: "mount", args: ["-t", "xfs", "-o", "noatime", device, folder] });
    } finally {
      // Once it is mounted, the device goes with the mount.
      await losetup("--detach", device);
    }
  } catch (error) {
    throw new StartRefused(
      `The databases of projects are in ${volume}, which cannot be mounted: ${(error as Error).message}`,
    );
  }
}

const losetup = async (...args: string[]) => (await runOk({ file: "losetup", args })).stdout.trim().split(/\s+/);

/** Does nothing where nothing is mounted. Throws `StartRefused` while something uses it. */
export async function unmount(folder: string): Promise<void> {
  if (!isMounted(folder)) return;
  await runOk({ file: "umount", args: [folder] }).catch((error: unknown) => {
    throw new StartRefused(`${folder} is in use: ${(error as Error).message}`);
  });
}

function isMounted(folder: string): boolean {
  const device = (path: string) => statSync(path, { throwIfNoEntry: false })?.dev;
  return device(folder) !== undefined && device(folder) !== device(join(folder, ".."));
}
