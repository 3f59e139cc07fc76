import type pg from "pg";
import { silentLog } from "../../src/kit/log.ts";
import { openDatabase, type Database } from "../../src/store/database.ts";
import { sharedServer } from "../../tools/template-db/shared-server.ts";
import { cloneTemplate, dropClone, ensureTemplate } from "../../tools/template-db/template.ts";

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

/** A connection to the tests' server that may create databases. */
export async function testServer(): Promise<pg.ClientConfig> {
  const url = process.env["BERTH_TEST_DATABASE_URL"];
  return url ? fromUrl(url) : sharedServer();
}

// Spelt out, because pg lets a connectionString win over the database named beside it.
function fromUrl(text: string): pg.ClientConfig {
  const url = new URL(text);
  const socket = url.searchParams.get("host");
  return {
    host: socket ?? decodeURIComponent(url.hostname),
    port: Number(url.port || 5432),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: url.pathname.slice(1) || "postgres",
  };
}
