import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { StartRefused, type Config } from "../config.ts";
import { restorePlatform } from "./restore-platform.ts";

/** The help of `berthd restore`. */
export const restoreUsage = `Usage: berthd restore s3|FOLDER|FILE --key FILE [--backup ID]

  s3        the store of BERTH_S3_URL and BERTH_S3_SECRET_KEY_FILE
  FOLDER    a copy of the folder \`backups\` of a data folder
  FILE      one backup of the platform, platform/pbk_….tar.age; databases come from the storages that are configured
  --key     a file with the recovery key, the line AGE-SECRET-KEY-1…
  --backup  an older backup; by default the newest

Run it with the settings that the platform will have (docs/config.md) and an empty data folder. Nothing else may run the old platform meanwhile.`;

/** Performs `berthd restore`. */
export async function restoreCommand(config: Config, args: readonly string[], say: (line: string) => void) {
  const given = readArguments(args);
  if (given === undefined) throw new StartRefused(restoreUsage);
  if (!existsSync(given.key)) throw new StartRefused(`There is no file ${given.key}.`);
  await restorePlatform(config, given, say);
}

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
