import { join } from "node:path";
import type { RecoveryKeyFiles } from "../../adapters/platform-archive-age/recovery-key.ts";
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
  };
}

export function recoveryKeyFiles({ dataDir }: Pick<Config, "dataDir">): RecoveryKeyFiles {
  const { recoveryKey: identity, recoveryRecipient: recipient } = pathsIn(dataDir);
  return { identity, recipient };
}
