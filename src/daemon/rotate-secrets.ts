import { openDatabase } from "../store/database.ts";
import { rotateVault } from "../store/rotate-vault.ts";
import { pathsIn, type Config } from "./config.ts";
import { createLog } from "./log.ts";
import { openOwnDatabase, requireMatchingData, requireOwnDatabase } from "./own-database.ts";
import { ensureMachine } from "./setup/machine.ts";

/** Seals every secret in the database under a new key. The platform may run meanwhile. */
export async function rotateSecrets(config: Config, say: (line: string) => void): Promise<void> {
  const log = createLog({ format: config.logFormat, level: "warn" });
  const parts = await ensureMachine({
    dataDir: config.dataDir,
    log,
    install: false,
    environment: config.toolEnvironment,
    postgres: config.databaseUrl === null,
    edge: false,
  });
  requireOwnDatabase(config);
  const own = await openOwnDatabase(config, parts, log);
  const database = openDatabase({ connection: own.connection, log });
  try {
    await requireMatchingData(config, database.db);
    const { key, resealed } = await rotateVault({
      db: database.db,
      keyFile: config.keyFile ?? pathsIn(config.dataDir).keyFile,
    });
    say(`Encrypted ${resealed} secrets with key ${key}.`);
  } finally {
    await database.close();
    await own.detach();
  }
}
