import { StartRefused, type Config } from "../config.ts";
import { createLog } from "../log.ts";
import { ensureMachine } from "../setup/machine.ts";
import { rehearseMigrations } from "./control-copy.ts";

/** Tries what this version needs: installs missing parts, and migrates a copy of the database, if given. Throws `StartRefused`. */
export async function rehearse(config: Config, copy: string | undefined): Promise<void> {
  const log = createLog({ format: config.logFormat, level: "warn" });
  const { dataDir, install, toolEnvironment: environment, haproxy } = config;
  const parts = await ensureMachine({
    dataDir,
    log,
    install,
    environment,
    postgres: config.databaseUrl === null,
    haproxy,
  });
  const needed = [parts.haproxy, parts.git, ...(config.databaseUrl === null ? [parts.postgresBin] : [])];
  if (needed.includes(null))
    throw new StartRefused(`Missing: ${parts.missing.map(({ part, command }) => `${part} (${command})`).join(", ")}`);
  if (copy === undefined) return;
  await rehearseMigrations(config, parts, copy).catch((error: unknown) => {
    const { message, cause } = error as Error;
    throw new StartRefused(`${message} ${cause instanceof Error ? cause.message : ""}`.trim(), { cause: error });
  });
}
