import { existsSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { StartRefused, pathsIn, type Config } from "../config.ts";
import { isAlive, sendSignal } from "../../kit/processes.ts";
import { readTextOrEmpty } from "../../kit/whole-file.ts";
import { holdDataFolder, holderOf } from "../data-folder.ts";
import { newestBackup, restoreHeld, restorePlatform } from "./restore-platform.ts";

export async function restoreCommand(config: Config, args: readonly string[], say: (line: string) => void) {
  const given = readArguments(args);
  if (given === undefined) throw new StartRefused(restoreUsage);
  if (!existsSync(given.key)) throw new StartRefused(`There is no file ${given.key}.`);
  await restorePlatform(config, given, say);
}

export const restoreUsage = `Usage: berthd restore s3|FOLDER|FILE --key FILE [--backup ID]

  s3        the store of BERTH_S3_URL and BERTH_S3_SECRET_KEY_FILE
  FOLDER    a copy of the folder \`backups\` of a data folder
  FILE      one backup of the platform, platform/pbk_….tar.age; databases come from the storages that are configured
  --key     a file with the recovery key, the line AGE-SECRET-KEY-1…
  --backup  an older backup; by default the newest

Run it with the settings that the platform will have (docs/config.md) and an empty data folder. Nothing else may run the old platform meanwhile.`;

function readArguments(args: readonly string[]) {
  try {
    const options = { key: { type: "string" }, backup: { type: "string" } } as const;
    const { positionals, values } = parseArgs({ args: [...args], options, allowPositionals: true });
    const [from, ...more] = positionals;
    if (from === undefined || more.length > 0 || values.key === undefined) return undefined;
    return { from, key: values.key, backup: values.backup ?? null };
  } catch {
    return undefined;
  }
}

export const standbyUsage = `Usage: berthd follow s3|FOLDER --key FILE   ·   berthd promote

  follow   keep this machine a standby: restore each newer backup of the platform into the data folder, and start nothing
  promote  make the standby the platform: end \`berthd follow\`, and start

Run both with the settings that the platform will have. Before you promote, make sure that the old platform is gone.`;

const lookEveryMs = 15_000;

/** Performs `berthd follow`: restores each newer backup until the process is told to end, which it does between restores. */
export async function follow(config: Config, args: readonly string[], say: (line: string) => void): Promise<void> {
  const given = readArguments(args);
  if (given === undefined || given.backup !== null) throw new StartRefused(standbyUsage);
  if (!existsSync(given.key)) throw new StartRefused(`There is no file ${given.key}.`);
  if (config.databaseUrl !== null)
    throw new StartRefused(
      "A standby has a database of its own: unset BERTH_DATABASE_URL, or let its server replicate.",
    );
  const stopping = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => stopping.abort());
  const held = holdDataFolder(config.dataDir);
  const { standby } = pathsIn(config.dataDir);
  try {
    while (!stopping.signal.aborted) {
      await keepUp(config, given, say).catch((error: unknown) => {
        // A data folder that holds something else stays as it is.
        if (!existsSync(standby) && error instanceof StartRefused) throw error;
        say(`berthd: ${(error as Error).message}`);
      });
      await sleep(lookEveryMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  } finally {
    held.release();
  }
}

async function keepUp(config: Config, { from, key }: { from: string; key: string }, say: (line: string) => void) {
  const { standby, restoring } = pathsIn(config.dataDir);
  const backup = await newestBackup(config, from);
  if (readTextOrEmpty(standby).trim() === backup && !existsSync(restoring)) return;
  await restoreHeld(config, { from, key, backup, standby: backup }, say);
  say(`This machine stands by with ${backup}. \`berthd promote\` makes it the platform.`);
}

/** Ends `berthd follow` after what it restores, so that the data folder can be started. */
export async function promote({ dataDir }: Config, say: (line: string) => void): Promise<void> {
  const { standby, restoring } = pathsIn(dataDir);
  const follower = holderOf(dataDir);
  if (!existsSync(standby))
    throw new StartRefused(`${dataDir} is no standby, or its first restore has not ended.\n${standbyUsage}`);
  if (follower !== undefined) {
    if (existsSync(restoring)) say("A newer backup is being restored; waiting for its end");
    sendSignal(follower, "SIGTERM");
    while (isAlive(follower)) await sleep(100);
  }
  // Against a `follow` that systemd starts again.
  const held = holdDataFolder(dataDir);
  try {
    if (existsSync(restoring))
      throw new StartRefused(
        "Restoring the newest backup was interrupted: run `berthd follow` again until it says that it stands by.",
      );
    rmSync(standby);
  } finally {
    held.release();
  }
}
