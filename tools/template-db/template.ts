import { createHash, randomBytes } from "node:crypto";
import pg from "pg";
import { migrate, readMigrations } from "../../src/store/migrate.ts";

/** Creates the migrated template database of this checkout's SQL files, if missing; returns its name. Safe to call concurrently. */
export async function ensureTemplate(server: pg.ClientConfig): Promise<string> {
  const sums = (await readMigrations()).map((file) => file.sha256).join();
  const name = `berth_template_${createHash("sha256").update(sums).digest("hex").slice(0, 12)}`;
  await withClient(server, async (client) => {
    await client.query("select pg_advisory_lock(42254050)");
    const { rowCount } = await client.query("select from pg_database where datname = $1 and datallowconn is false", [
      name,
    ]);
    if (rowCount === 1) return;
    await client.query(`drop database if exists ${name}`);
    await client.query(`create database ${name}`);
    await migrate({ connection: { ...server, database: name } });
    // Closed to connections: none is made by mistake, and cloning never finds the template in use.
    await client.query(`alter database ${name} allow_connections false`);
  });
  return name;
}

/** Creates a copy of the template; drop it with `dropClone`. */
export async function cloneTemplate(server: pg.ClientConfig, template: string): Promise<string> {
  const name = `berth_test_${process.pid}_${randomBytes(4).toString("hex")}`;
  await withClient(server, (client) => client.query(`create database ${name} template ${template}`));
  return name;
}

/** Terminates the copy's connections and drops it. */
export async function dropClone(server: pg.ClientConfig, name: string): Promise<void> {
  await withClient(server, (client) => client.query(`drop database if exists ${name} with (force)`));
}

async function withClient<T>(connection: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(connection);
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
