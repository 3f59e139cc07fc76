import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";

export interface MigrateOptions {
  readonly connection: pg.ClientConfig;
  /** The folder with the numbered SQL files. Defaults to the checkout's `sql`. */
  readonly folder?: string;
  /** Also applies files that contract the schema, on which the version before then no longer runs. An empty database gets all files. */
  readonly finalize?: boolean;
}

/** Thrown when the database and the SQL files contradict each other; the message is a sentence for the operator. */
class MigrationRefused extends Error {
  override readonly name = "MigrationRefused";
}

/**
 * Migrates the database to the newest schema and returns the names of the files it applied, in order. Forward only, one transaction per
 * file. Concurrent calls are safe: the second waits and finds nothing to do. Files of a newer version that only expanded the schema are
 * left alone: this version runs on it, too. Files that contract the schema wait for `finalize`.
 */
export async function migrate(options: MigrateOptions): Promise<readonly string[]> {
  const files = await readMigrations(options.folder ?? ownFolder);
  const client = new pg.Client(options.connection);
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query("select pg_advisory_lock($1)", [lockNumber]);
    await client.query(ledger);
    await replaceByBaseline(client, files);
    const pending = await compare(client, files, options.finalize ?? false);
    for (const file of pending) await apply(client, file);
    return pending.map((file) => file.name);
  } finally {
    await client.end();
  }
}

/** Returns the names of the files that `migrate` would apply to a database that is in use; none for an empty one. Changes nothing. */
export async function pendingMigrations(options: MigrateOptions): Promise<readonly string[]> {
  const files = await readMigrations(options.folder ?? ownFolder);
  const client = new pg.Client(options.connection);
  client.on("error", () => {});
  await client.connect();
  try {
    const found = await client.query<{ ledger: string | null }>("select to_regclass('schema_migration') as ledger");
    if (found.rows[0]?.ledger === null) return [];
    const { rows } = await client.query<{ name: string }>("select name from schema_migration");
    const applied = new Set(rows.map(({ name }) => name));
    const isNext = ({ name, kind }: Migration) =>
      !applied.has(name) && (kind === "contract") === (options.finalize ?? false);
    return files.filter(isNext).map(({ name }) => name);
  } finally {
    await client.end();
  }
}

export interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly sha256: string;
  /** From its first line. After `expand`, the version before still runs on the schema; after `contract`, it does not. */
  readonly kind: "expand" | "contract";
}

const ownFolder = fileURLToPath(new URL("../../sql", import.meta.url));
// An arbitrary number that nothing else in this database locks: "berth" in ASCII.
const lockNumber = "422542504040";
const ledger = `create table if not exists schema_migration (
  name text primary key, sha256 text not null, applied_at timestamptz not null default now(), kind text not null)`;

/** Reads the migrations of a folder, in order: `NNNN-name.sql`. */
export async function readMigrations(folder: string = ownFolder): Promise<readonly Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}-[a-z0-9-]+\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(join(folder, name), "utf8");
      const kind = /^-- (expand|contract)$/m.exec(sql.slice(0, sql.indexOf("\n")))?.[1];
      if (kind === undefined)
        throw new MigrationRefused(`The first line of sql/${name} must be "-- expand" or "-- contract".`);
      return { name, sql, sha256: sha256(sql), kind: kind as Migration["kind"] };
    }),
  );
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

// Remove this with 2.0. The digest is that of the names and texts of the 52 migrations that the baseline replaced.
const replaced = "e0a597683368a17d06128e9feaf995b928c8d8e80476db1f5f23816535bb7c60";

/** Records that a database which has applied the migrations before the baseline has the baseline's schema. */
async function replaceByBaseline(client: pg.Client, [baseline]: readonly Migration[]): Promise<void> {
  const { rowCount } = await client.query("select from schema_migration where name = '0001-first-slice.sql'");
  if (rowCount !== 1 || baseline === undefined) return;
  // One file was renamed after some databases had applied it.
  await client.query(
    "update schema_migration set name = '0044-database-host.sql' where name = '0046-database-host.sql'",
  );
  const { rows } = await client.query<{ line: string }>(
    "select name || ' ' || sha256 as line from schema_migration order by name",
  );
  if (sha256(rows.map(({ line }) => line).join("\n")) !== replaced)
    throw new MigrationRefused(
      "An unreleased version of Berth that is too old has migrated the database. Start the version of commit 738431c0 once, then this one.",
    );
  await client.query("begin; delete from schema_migration; alter table schema_migration add column kind text not null");
  await record(client, baseline);
  await client.query("commit");
}

async function compare(
  client: pg.Client,
  files: readonly Migration[],
  finalize: boolean,
): Promise<readonly Migration[]> {
  const { rows } = await client.query<{ name: string; sha256: string; kind: string }>(
    "select name, sha256, kind from schema_migration order by name",
  );
  const known = new Map(files.map((file) => [file.name, file]));
  for (const row of rows) {
    const file = known.get(row.name);
    if (!file && row.kind === "expand") continue;
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
  return files.filter(({ name, kind }) => !applied.has(name) && (kind === "expand" || finalize || rows.length === 0));
}

// Inserts the ledger row first: a concurrent process would wait on its key and then fail before it changes anything.
async function apply(client: pg.Client, file: Migration): Promise<void> {
  await client.query("begin");
  try {
    await record(client, file);
    await client.query(file.sql);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw new Error(`The migration ${file.name} failed; the database is as it was before.`, { cause: error });
  }
}

function record(client: pg.Client, { name, sha256: digest, kind }: Migration): Promise<unknown> {
  return client.query("insert into schema_migration (name, sha256, kind) values ($1, $2, $3)", [name, digest, kind]);
}
