import type pg from "pg";
import { silentLog } from "../../src/kit/log.ts";
import { openDatabase, type Database } from "../../src/store/database.ts";
import { cloneTemplate, dropClone, ensureTemplate } from "../../tools/template-db/template.ts";
import { testServer } from "../../tools/template-db/test-server.ts";

export interface TestDatabase extends Database {
  /** For whoever opens connections of its own. */
  readonly connection: pg.ClientConfig;
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
  const drop = async () => {
    await database.close();
    await dropClone(server, name);
  };
  return { ...database, connection, drop };
}
