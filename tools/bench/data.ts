import pg from "pg";
import { createLocalPostgresHost } from "../../src/adapters/postgres-host-local/local-postgres-host.ts";
import { makeTestPlace, missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { createPostgresTenantDatabase } from "../../src/adapters/tenant-database-postgres/postgres-tenant-database.ts";
import { databaseOf, requestDatabase, specOf } from "../../src/features/database/database.ts";
import { testProject } from "../../test/support/fixtures.ts";
import { testApi, testOrganization } from "../../test/support/test-platform.ts";
import { median, timeRow, type BenchRow } from "./row.ts";

const rounds = 15;
const tableRows = 10_000_000;

/** Returns what the machine lacks for `measureData`, as a sentence; undefined if nothing. */
export function dataBenchLacks(): string | undefined {
  return missingPart === false ? undefined : `The table browser is not measured: ${missingPart}.`;
}

/**
 * Compares a page of a table of 10 million rows through the API with its query alone, by pg over its own connection. Needs 1 GB of disk.
 */
export async function measureData(): Promise<readonly BenchRow[]> {
  const ground = await openGround();
  try {
    const rows: BenchRow[] = [];
    for (const page of pages) rows.push(await measurePage(ground, page));
    return rows;
  } finally {
    await ground.close();
  }
}

interface Page {
  readonly name: string;
  readonly query: string;
  readonly sql: string;
  readonly goal: number | null;
}

const pages: readonly Page[] = [
  { name: "first page", query: "", sql: "ORDER BY id LIMIT 50", goal: null },
  {
    name: "sorted by an indexed column",
    query: "?sort=score&dir=desc",
    sql: "ORDER BY score DESC, id DESC LIMIT 50",
    goal: null,
  },
  { name: "100,000 rows in", query: "?offset=100000", sql: "ORDER BY id LIMIT 50 OFFSET 100000", goal: null },
  {
    name: "search, found early",
    query: "?q=customer%2077",
    sql: "WHERE strpos(lower(name), 'customer 77') > 0 ORDER BY id LIMIT 50",
    goal: null,
  },
];

interface Ground {
  readonly get: (query: string) => Promise<void>;
  readonly ask: (sql: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

async function measurePage({ get, ask }: Ground, { name, query, sql, goal }: Page): Promise<BenchRow> {
  const times = { ours: [] as number[], theirs: [] as number[] };
  for (let round = -2; round < rounds; round += 1) {
    const theirs = await timed(() => ask(sql));
    const ours = await timed(() => get(query));
    // The first rounds only warm up the server's cache and the compiler.
    if (round < 0) continue;
    times.ours.push(ours);
    times.theirs.push(theirs);
  }
  const medians = { ours: median(times.ours), theirs: median(times.theirs), goal };
  return timeRow(`table of 10 million rows, ${name}`, "pg, connecting and asking the same", medians);
}

async function timed(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function openGround(): Promise<Ground> {
  const place = makeTestPlace();
  const host = createLocalPostgresHost(place.options);
  const endSession = (login: { spec: Parameters<typeof host.endSession>[0] }, processId: number) =>
    host.endSession(login.spec, processId);
  const limitSession: Parameters<typeof createPostgresTenantDatabase>[0]["limitSession"] = (login, processId) =>
    host.limitSession(login.spec, processId);
  const tenantDatabase = createPostgresTenantDatabase({ connections: 3, endSession, limitSession });
  const api = await testApi({ ports: { postgresHost: host, tenantDatabase } });
  const org = await testOrganization(api.database.db, "bench");
  const project = await testProject(api.platform, org, "demo");
  const owner = { org_id: org.id, project_id: project.id };
  await api.database.db.transaction().execute((tx) => requestDatabase(tx, api.platform.vault, owner));
  const row = await databaseOf(api.database.db, org.id, project.id);
  if (row === undefined) throw new Error("the database row was not made");
  const spec = specOf(api.platform.vault, row);
  const { host: sockets, port } = await host.ensure(spec);
  await api.database.db.updateTable("project_database").set({ status: "ready", host: sockets, port }).execute();
  const login = {
    host: sockets,
    port,
    user: spec.role_name,
    password: spec.password,
    database: spec.database_name,
  };
  const ask = (sql: string) =>
    withClient(login, (client) => client.query(`SELECT id, name, score FROM customers ${sql}`));
  await withClient(login, fill);
  return {
    ask,
    async get(query) {
      const called = await api.call("GET", `/v1/projects/demo/data/tables/public/customers${query}`, {
        token: org.member,
      });
      if (called.status !== 200) throw new Error(`the API answered ${called.text}`);
    },
    async close() {
      await host.destroy(spec.id);
      await api.close();
      place.remove();
    },
  };
}

async function fill(client: pg.Client): Promise<void> {
  await client.query("SET statement_timeout = 0; SET maintenance_work_mem = '256MB'");
  await client.query("CREATE UNLOGGED TABLE customers (id int, name text, score int)");
  await client.query(
    `INSERT INTO customers SELECT n, 'Customer ' || n, (n::bigint * 7919) % 1000003 FROM generate_series(1, ${tableRows}) n`,
  );
  await client.query("ALTER TABLE customers ADD PRIMARY KEY (id)");
  await client.query("CREATE INDEX ON customers (score, id)");
  await client.query("VACUUM ANALYZE customers");
}

async function withClient(login: pg.ClientConfig, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client(login);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
