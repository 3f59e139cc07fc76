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
  /** For whoever opens connections of its own. */
  readonly connection: pg.ClientConfig;
  /** Seals its secrets. */
  readonly vault: Vault;
  /** The vault's key, which goes with the database. */
  readonly keyFile: string;
  /** Closes the pool and drops the database. */
  drop(): Promise<void>;
}

/**
 * A migrated database of this test file's own on a real server: `BERTH_TEST_DATABASE_URL` if set (its user may create databases),
 * else one that the test files of a run share. Call `drop` in `after`.
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
