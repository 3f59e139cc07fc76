import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  ensureIdentity,
  readIdentity,
  type RecoveryKeyFiles,
} from "../../adapters/platform-archive-age/recovery-key.ts";
import { readTextOrEmpty } from "../../kit/whole-file.ts";
import { pathsIn, type Config } from "../config.ts";

/** Returns the files that a backup of the platform holds beside its database and repositories, by their names there. */
export function keptFiles(config: Pick<Config, "dataDir" | "keyFile">): Readonly<Record<string, string>> {
  const paths = pathsIn(config.dataDir);
  return {
    "secrets.key": config.keyFile ?? paths.keyFile,
    "ssh-host-key": paths.hostKey,
    "machine-name": join(config.dataDir, "machine-name"),
    "admin-token": paths.adminToken,
    "recovery.pub": paths.recoveryRecipient,
    "storage.key": paths.storageKey,
  };
}

export function recoveryKeyFiles({ dataDir }: Pick<Config, "dataDir">): RecoveryKeyFiles {
  const { recoveryKey: identity, recoveryRecipient: recipient } = pathsIn(dataDir);
  return { identity, recipient };
}

/** Returns the age recipients of files in a store: the recovery key, and a key that stays here when that one is moved away. */
export async function recipientsOf(config: Pick<Config, "dataDir">): Promise<readonly string[]> {
  const { recoveryRecipient, storageKey } = pathsIn(config.dataDir);
  const recovery = readTextOrEmpty(recoveryRecipient).trim();
  if (recovery === "") throw new Error(`The file ${recoveryRecipient} is missing: a restart makes it again.`);
  return [recovery, await ensureIdentity(storageKey, "# Berth's key to its own files in the store of BERTH_S3_URL.")];
}

/** Returns the age identities that are at hand: one that was given, and those in the data folder. */
export function identitiesOf({ dataDir }: Pick<Config, "dataDir">, given: string | null): readonly string[] {
  const { storageKey, recoveryKey } = pathsIn(dataDir);
  const own = [storageKey, recoveryKey].filter((file) => existsSync(file)).map(readIdentity);
  return given === null ? own : [...own, given];
}
