import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";

export interface MigrateOptions {
  readonly connection: pg.ClientConfig;
  /** The folder with the numbered SQL files. Defaults to the checkout's `sql`. */
  readonly folder?: string;
}

/** Thrown when the database and the SQL files contradict each other; the message is a sentence for the operator. */
class MigrationRefused extends Error {
  override readonly name = "MigrationRefused";
}

/**
 * Migrates the database to the newest schema and returns the names of the files it applied, in order. Forward only, one transaction per
 * file. Concurrent calls are safe: the second waits and finds nothing to do.
 */
export async function migrate(options: MigrateOptions): Promise<readonly string[]> {
  const files = await readMigrations(options.folder ?? ownFolder);
  const client = new pg.Client(options.connection);
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [lockNumber]);
    await client.query(ledger);
    const pending = await compare(client, files);
    for (const file of pending) await apply(client, file);
    return pending.map((file) => file.name);
  } finally {
    await client.end();
  }
}

interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly sha256: string;
}

const ownFolder = fileURLToPath(new URL("../../sql", import.meta.url));
// An arbitrary number that nothing else in this database locks: "berth" in ASCII.
const lockNumber = "422542504040";
const ledger = `create table if not exists schema_migration (
  name text primary key, sha256 text not null, applied_at timestamptz not null default now())`;

/** Reads the migrations of a folder, in order: `NNNN-name.sql`. */
export async function readMigrations(folder: string = ownFolder): Promise<readonly Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}-[a-z0-9-]+\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(join(folder, name), "utf8");
      return { name, sql, sha256: createHash("sha256").update(sql).digest("hex") };
    }),
  );
}

async function compare(client: pg.Client, files: readonly Migration[]): Promise<readonly Migration[]> {
  const { rows } = await client.query<{ name: string; sha256: string }>(
    "select name, sha256 from schema_migration order by name",
  );
  const known = new Map(files.map((file) => [file.name, file]));
  for (const row of rows) {
    const file = known.get(row.name);
    if (!file)
      throw new MigrationRefused(
        `A newer version of Berth has migrated the database (${row.name}). Start that version.`,
      );
    if (file.sha256 !== row.sha256) {
      throw new MigrationRefused(
        `The migration ${row.name} was changed after it had been applied. Restore the file; a change needs a new file.`,
      );
    }
  }
  const applied = new Set(rows.map((row) => row.name));
  return files.filter((file) => !applied.has(file.name));
}

// Inserts the ledger row first: a concurrent process would wait on its key and then fail before it changes anything.
async function apply(client: pg.Client, file: Migration): Promise<void> {
  await client.query("begin");
  try {
    await client.query("insert into schema_migration (name, sha256) values ($1, $2)", [file.name, file.sha256]);
    await client.query(file.sql);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw new Error(`The migration ${file.name} failed; the database is as it was before.`, { cause: error });
  }
}
