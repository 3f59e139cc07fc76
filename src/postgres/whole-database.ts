import pg, { type PoolConfig } from "pg";
import { runOk } from "../kit/exec.ts";

const timeoutMs = 30 * 60_000;

export interface DatabaseFile {
  readonly connection: PoolConfig;
  /** An archive of `pg_dump` in the custom format. */
  readonly file: string;
  /** `pg_dump` or `pg_restore`; null when it is not installed. */
  readonly program: string | null;
}

/** Writes one of the platform's own databases to a file, as it is at one moment. */
export async function saveDatabase({ connection, file, program }: DatabaseFile, signal?: AbortSignal): Promise<void> {
  const args = ["--format=custom", `--file=${file}`];
  await runOk({ file: needed(program), args }, { env: clientEnvironment(connection), timeoutMs, ...given(signal) });
}

/** Fills an empty database of the platform's own from such a file, wholly or not at all. */
export async function loadDatabase({ connection, file, program }: DatabaseFile): Promise<void> {
  const env = clientEnvironment(connection);
  const args = ["--exit-on-error", "--single-transaction", "--no-owner", `--dbname=${env.PGDATABASE}`, file];
  await runOk({ file: needed(program), args }, { env, timeoutMs });
}

const given = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

function needed(program: string | null): string {
  if (program === null) throw new Error("PostgreSQL's programs are missing.");
  return program;
}

/** Returns the variables of libpq for a connection: a password must not be an argument. */
function clientEnvironment(connection: PoolConfig) {
  const { host, port, user, password, database } = new pg.Client(connection);
  return {
    ...{ PGHOST: host, PGPORT: String(port), PGUSER: user ?? "", PGPASSWORD: password ?? "" },
    ...{ PGDATABASE: database ?? "", LC_ALL: "C.UTF-8" },
  };
}
