import { randomBytes } from "node:crypto";
import pg from "pg";
import { newId } from "../../src/kit/ids.ts";
import type { TenantDatabaseFixture } from "../../src/ports/tenant-database.suite.ts";
import type { TenantLogin } from "../../src/ports/tenant-database.ts";
import { testServer } from "../../tools/template-db/test-server.ts";
import { createPostgresTenantDatabase } from "../../src/adapters/tenant-database-postgres/postgres-tenant-database.ts";

/** A role with its database on the tests' server, created like a project's, and the adapter that reads it. */
export interface TenantFixture extends TenantDatabaseFixture {
  /** The process ids of the sessions that the platform terminated. */
  readonly ended: number[];
}

/** Creates a tenant; `close` drops everything again. */
export async function testTenant(
  options: { readonly connections?: number; readonly answerBytes?: number } = {},
): Promise<TenantFixture> {
  const server = await testServer();
  const id = randomBytes(6).toString("hex");
  const spec = {
    id: newId("dbs"),
    project_id: newId("prj"),
    project_number: 1,
    role_name: `u${id}`,
    database_name: `d${id}`,
    password: id,
    access: "open" as const,
  };
  await asSuperuser(server, [
    `CREATE ROLE ${spec.role_name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT CONNECTION LIMIT 20 PASSWORD '${id}'`,
    `CREATE DATABASE ${spec.database_name} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'`,
    `REVOKE ALL ON DATABASE ${spec.database_name} FROM PUBLIC`,
    `GRANT CONNECT, TEMPORARY, CREATE ON DATABASE ${spec.database_name} TO ${spec.role_name}`,
  ]);
  await asSuperuser({ ...server, database: spec.database_name }, [`ALTER SCHEMA public OWNER TO ${spec.role_name}`]);
  const port = server.port ?? 5432;
  const login: TenantLogin = { spec, tls: null, port, host: server.host ?? "" };
  const own = {
    host: server.host,
    port,
    user: spec.role_name,
    password: id,
    database: spec.database_name,
  } as pg.ClientConfig;
  const ended: number[] = [];
  const endSession = async (_: TenantLogin, processId: number) => {
    ended.push(processId);
    await asSuperuser(server, [`SELECT pg_terminate_backend(${processId})`]);
  };
  const client = new pg.Client(own);
  client.on("error", () => {});
  await client.connect();
  return {
    database: createPostgresTenantDatabase({
      connections: 3,
      ...options,
      endSession,
      limitSession: async () => async () => false,
    }),
    login,
    ended,
    sql: async (text) => (await client.query<Record<string, unknown>>(text)).rows ?? [],
    async sleep() {
      const sleeper = new pg.Client(own);
      sleeper.on("error", () => {});
      await sleeper.connect();
      await sleeper.query("SELECT pg_sleep(60)").finally(() => sleeper.end().catch(() => {}));
    },
    async close() {
      await client.end();
      await asSuperuser(server, [`DROP DATABASE ${spec.database_name} WITH (FORCE)`, `DROP ROLE ${spec.role_name}`]);
    },
  };
}

async function asSuperuser(connection: pg.ClientConfig, statements: readonly string[]): Promise<void> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
