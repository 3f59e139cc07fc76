import { existsSync } from "node:fs";
import { sql } from "kysely";
import type { Db } from "./database.ts";
import { addKey, dropKeys, readKeyring } from "./keyring.ts";
import { keyOf, openVault, type Vault } from "./vault.ts";

/** Every column with sealed secrets: its table, and the name under which the content was sealed. */
const sealedColumns = [
  {
    table: "project_variable",
    column: "sealed_value",
    project: "project_id",
    keys: ["project_id", "key"],
    name: (row: SealedRow) => `variable:${String(row["key"])}`,
  },
  { table: "project", column: "sealed_cron_secret", project: "id", keys: ["id"], name: () => "cron_secret" },
  {
    table: "project_database",
    column: "sealed_password",
    project: "project_id",
    keys: ["id", "project_id"],
    name: () => "database_password",
  },
  {
    table: "deployment",
    column: "sealed_variables",
    project: "project_id",
    keys: ["id", "project_id"],
    name: (row: SealedRow) => `deployment:${String(row["id"])}`,
  },
  {
    table: "registry",
    column: "sealed_password",
    project: "org_id",
    keys: ["org_id", "host"],
    name: (row: SealedRow) => `registry:${String(row["host"])}`,
  },
  { table: "provider", column: "sealed_secret", project: "id", keys: ["id"], name: () => "provider_secret" },
  {
    table: "certificate",
    column: "sealed_key",
    project: "id",
    keys: ["id"],
    name: () => "certificate_key",
  },
  {
    table: "acme_account",
    column: "sealed_key",
    project: "directory",
    keys: ["directory"],
    name: () => "acme_account_key",
  },
  { table: "webhook", column: "sealed_url", project: "id", keys: ["id"], name: () => "webhook_url" },
  { table: "webhook", column: "sealed_secret", project: "id", keys: ["id"], name: () => "webhook_secret" },
  { table: "notification", column: "sealed_message", project: "id", keys: ["id"], name: () => "notification" },
  {
    table: "idempotency_key",
    column: "sealed_answer",
    project: "token_id",
    keys: ["token_id", "key"],
    name: (row: SealedRow) => `idempotency:${String(row["key"])}`,
  },
] as const;

type SealedColumn = (typeof sealedColumns)[number];
type SealedRow = Readonly<Record<string, string | Buffer>>;

/**
 * Seals all secrets again under a new key. After an interruption, the next call continues with the key that was already created. Deletes
 * unused keys of earlier rotations; the key just replaced stays until the next rotation, because a running process may still be writing
 * with it.
 */
export async function rotateVault(options: { readonly db: Db; readonly keyFile: string }) {
  const { db, keyFile } = options;
  const vault = openVault({ keyFile });
  const used = await keysInUse(db);
  const { current, keys } = readKeyring(keyFile);
  const interrupted = [...used].some((number) => number !== current);
  if (!interrupted) {
    dropKeys(
      keyFile,
      [...keys.keys()].filter((number) => !used.has(number)),
    );
    addKey(keyFile);
  }
  let resealed = 0;
  for (const column of sealedColumns) resealed += await resealColumn(db, vault, column);
  return { key: vault.currentKey(), resealed };
}

async function keysInUse(db: Db): Promise<ReadonlySet<number>> {
  const used = new Set<number>();
  for (const { table, column } of sealedColumns) {
    const header = sql<Buffer>`substring(${sql.ref(column)} from 2 for 4)`;
    const { rows } = await sql<{
      number: Buffer;
    }>`select distinct ${header} as number from ${sql.table(table)}
      where ${sql.ref(column)} is not null`.execute(db);
    for (const row of rows) used.add(row.number.readUInt32BE(0));
  }
  return used;
}

const batchSize = 200;

async function resealColumn(db: Db, vault: Vault, column: SealedColumn): Promise<number> {
  for (let done = 0; ;) {
    const batch = await resealBatch(db, vault, column);
    done += batch;
    if (batch < batchSize) return done;
  }
}

// Locks the rows, so that a concurrent update is not overwritten with the old value.
async function resealBatch(db: Db, vault: Vault, column: SealedColumn): Promise<number> {
  const current = Buffer.alloc(4);
  current.writeUInt32BE(vault.currentKey());
  return db.transaction().execute(async (tx) => {
    const { rows } = await sql<SealedRow>`
      select ${sql.join(column.keys.map((key) => sql.ref(key)))}, ${sql.ref(column.column)} as sealed from ${sql.table(column.table)}
      where substring(${sql.ref(column.column)} from 2 for 4) <> ${current} limit ${sql.lit(batchSize)} for update`.execute(
      tx,
    );
    for (const row of rows) await reseal(tx, vault, column, row);
    return rows.length;
  });
}

async function reseal(tx: Db, vault: Vault, column: SealedColumn, row: SealedRow): Promise<void> {
  const sealed = row["sealed"] as Buffer;
  const projectId = String(row[column.project]);
  if (keyOf(sealed) === vault.currentKey()) return;
  const fresh = vault.seal(projectId, column.name(row), vault.open(projectId, column.name(row), sealed));
  const key = column.keys.map((name) => sql`${sql.ref(name)} = ${row[name]}`);
  await sql`update ${sql.table(column.table)} set ${sql.ref(column.column)} = ${fresh} where ${sql.join(key, sql` and `)}`.execute(
    tx,
  );
}

/** Returns, as a sentence for the operator, why the key file cannot belong to this database; undefined if it may. Creates no key. */
export async function keyProblem(db: Db, keyFile: string): Promise<string | undefined> {
  const remedy =
    "Restore the key file from a copy: without it, variables, database passwords and certificates are lost.";
  if (!existsSync(keyFile))
    return (await keysInUse(db)).size === 0
      ? undefined
      : `The key file ${keyFile} is missing, but the database holds secrets that it encrypted. ${remedy}`;
  const samples = await db.selectFrom("project").select(["id", "sealed_cron_secret"]).limit(3).execute();
  const vault = openVault({ keyFile });
  const isForeign = samples.every(({ id, sealed_cron_secret }) => {
    try {
      return vault.open(id, "cron_secret", sealed_cron_secret) === null;
    } catch {
      return true;
    }
  });
  if (samples.length === 0 || !isForeign) return undefined;
  return `The key file ${keyFile} decrypts none of the database's secrets, so it belongs to another database. ${remedy}`;
}
