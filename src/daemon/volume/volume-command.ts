import { existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { runOk } from "../../kit/exec.ts";
import { syncFileSystem, syncFolder } from "../../kit/sync-disk.ts";
import { StartRefused, mibToBytes, type Config } from "../config.ts";
import { endEverything } from "../doctor/uninstall.ts";
import { findProgram } from "../setup/find-program.ts";
import { unitsOf } from "../systemd/run-unit-command.ts";
import { attach, mountVolume, putBack, unmount, volumeFiles } from "./database-volume.ts";

type Say = (line: string) => void;

/** Makes the volume of databases, lets it grow, or takes it away. Throws `StartRefused` with the reason. */
export async function volumeCommand(config: Config, args: readonly string[], say: Say): Promise<void> {
  const [word = ""] = args;
  const [, count, unit] = /^(\d{1,6})([GT])$/.exec(word) ?? [];
  const bytes = Number(count) * units[unit as keyof typeof units];
  if (args.length !== 1 || (word !== "remove" && !(bytes >= leastBytes))) throw new StartRefused(volumeUsage);
  if (!config.isRoot) throw new StartRefused("Only root can mount a file system.");
  const missing = ["mkfs.xfs", "losetup", "fallocate"].find((name) => findProgram(name, "") === null);
  if (missing !== undefined)
    throw new StartRefused(`${missing} is missing. Install it: apt-get install xfsprogs util-linux`);
  const { volume } = volumeFiles(config.dataDir);
  const hasVolume = existsSync(volume);
  if (word === "remove" && !hasVolume) throw new StartRefused(`There is no ${volume}.`);
  if (word !== "remove" && hasVolume) return grow(config, bytes, say);
  await endEverything(config, unitsOf(config).files.length > 0, say);
  await mountVolume(config.dataDir);
  await (word === "remove" ? remove(config, say) : create(config, bytes, say));
  say("Start Berth again: berthd start, or systemctl start berth.service");
}

export const volumeUsage = `Usage: berthd volume SIZE | remove

  Puts the databases of projects into an XFS file system in a file of the data folder: a branch or a rehearsal of any of them then takes about a
  second, and disk space only for what changes. For data folders on file systems that cannot share blocks, such as ext4.

  SIZE    how large, such as 50G; the disk space is taken at once. If there is a volume, it grows to this size
  remove  put the databases back onto the disk of the data folder

  Only root can do it. Except to grow, Berth must be stopped, and applications and databases end meanwhile.`;

const units = { G: 1024 ** 3, T: 1024 ** 4 } as const;
// mkfs.xfs(8) makes nothing below 300 MB.
const leastBytes = units.G;

async function create({ dataDir, diskFloorMib }: Config, bytes: number, say: Say): Promise<void> {
  const { databases, volume, draft, before } = volumeFiles(dataDir);
  const [made, place] = [`${draft}.xfs`, draft];
  // What a killed attempt left.
  await unmount(place);
  rmSync(made, { force: true });
  mkdirSync(place, { recursive: true, mode: 0o700 });
  try {
    await allocate(made, bytes);
    await runOk({ file: "mkfs.xfs", args: ["-q", "-m", "reflink=1", made] }, { timeoutMs: patienceMs });
    await attach(made, place);
    try {
      if (existsSync(databases)) await copy(databases, place, say);
      const { bavail, bsize } = await statfs(place);
      if (bavail * bsize < 2 * mibToBytes(diskFloorMib))
        throw new StartRefused(
          `Choose a larger volume: twice BERTH_DISK_FLOOR_MIB (${diskFloorMib}) has to be free in it.`,
        );
    } finally {
      await unmount(place);
    }
  } catch (error) {
    rmSync(made, { force: true });
    throw error;
  }
  rmSync(place, { recursive: true });
  // From now on it counts, also for the next start if this process is killed.
  renameSync(made, volume);
  await syncFolder(dataDir);
  await mountVolume(dataDir);
  rmSync(before, { recursive: true, force: true });
  say(`The databases are in ${volume}. Its size counts as used on the disk.`);
}

async function remove({ dataDir }: Config, say: Say): Promise<void> {
  const { databases, volume, after } = volumeFiles(dataDir);
  const draft = `${after}.draft`;
  for (const earlier of [draft, after]) rmSync(earlier, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  await copy(databases, draft, say).catch((error: unknown) => {
    rmSync(draft, { recursive: true, force: true });
    throw error;
  });
  renameSync(draft, after);
  await unmount(databases);
  // From now on the copy counts.
  rmSync(volume);
  await syncFolder(dirname(volume));
  await putBack(dataDir);
  say(`The databases are in ${databases}, on the disk of the data folder.`);
}

async function grow({ dataDir }: Config, bytes: number, say: Say): Promise<void> {
  const { databases, volume } = volumeFiles(dataDir);
  if (bytes < statSync(volume).size)
    throw new StartRefused("A volume can only grow. To take it away: berthd volume remove");
  await mountVolume(dataDir);
  await allocate(volume, bytes);
  const { stdout } = await runOk({
    file: "findmnt",
    args: ["--noheadings", "--output", "SOURCE", "--mountpoint", databases],
  });
  await runOk({ file: "losetup", args: ["--set-capacity", stdout.trim()] });
  await runOk({ file: "xfs_growfs", args: [databases] });
  say(`${volume} has ${bytes / units.G} GiB now.`);
}

const patienceMs = 24 * 3_600_000;

/** Takes all of the space now: databases stop when their file system fills in the middle of a write. */
async function allocate(file: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(dirname(file));
  const more = bytes - (statSync(file, { throwIfNoEntry: false })?.size ?? 0);
  if (more > bavail * bsize) throw new StartRefused(`The disk has no room for ${bytes / units.G} GiB.`);
  await runOk({ file: "fallocate", args: ["--length", String(bytes), file] }, { timeoutMs: patienceMs });
}

async function copy(from: string, to: string, say: Say): Promise<void> {
  say(`Copying ${from}`);
  await runOk({ file: "cp", args: ["--archive", "--", `${from}/.`, to] }, { timeoutMs: patienceMs });
  await syncFileSystem(to);
}
