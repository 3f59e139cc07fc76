import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { silentLog } from "../../src/kit/log.ts";
import { openDatabase, type Database } from "../../src/store/database.ts";
import { openVault, type Vault } from "../../src/store/vault.ts";
import { cloneTemplate, dropClone, ensureTemplate } from "../../tools/template-db/template.ts";
import { testServer } from "../../tools/template-db/test-server.ts";

export interface TestDatabase extends Database {
  /** For code that opens its own connections. */
  readonly connection: pg.ClientConfig;
  /** Encrypts this database's secrets. */
  readonly vault: Vault;
  /** The key file of the vault that encrypts this database's secrets. */
  readonly keyFile: string;
  /** Closes the pool and drops the database. */
  drop(): Promise<void>;
}

/**
 * Creates a migrated database for this test file on a real server: the one at `BERTH_TEST_DATABASE_URL` if set (its user must be allowed to
 * create databases), else a server that all test files of a run share. Call `drop` in `after`.
 */
export async function testDatabase(): Promise<TestDatabase> {
  const server = await testServer();
  const name = await cloneTemplate(server, await ensureTemplate(server));
  const connection = { ...server, database: name };
  const database = openDatabase({ connection, log: silentLog });
  const folder = await mkdtemp(join(tmpdir(), "berth-test-"));
  const drop = async () => {
    await database.close();
    await dropClone(server, name);
    await rm(folder, { recursive: true });
  };
  const keyFile = join(folder, "key");
  return { ...database, connection, vault: openVault({ keyFile }), keyFile, drop };
}
