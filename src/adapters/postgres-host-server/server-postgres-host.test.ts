// Drawn with other data files: what a host of databases promises is shown by the local one in every run.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { runsAll } from "../../../test/support/draw-cases.ts";
import { eventually } from "../../../test/support/eventually.ts";
import {
  missingCluster,
  startTestCluster,
  type ClusterServer,
  type TestCluster,
} from "../../../test/support/postgres-cluster.ts";
import { findPostgres } from "../../../tools/template-db/find-postgres.ts";
import { runOk, systemPath } from "../../kit/exec.ts";
import type { ServerAddress } from "../../kit/server-address.ts";
import { carryServer, connectServer, type ServerTls } from "../../kit/server-tls.ts";
import { postgresHostBackupsSuite } from "../../ports/postgres-host-backups.suite.ts";
import {
  loginOf,
  newDatabaseSpec,
  postgresHostSuite,
  type SuiteLogin,
  type SuiteSession,
} from "../../ports/postgres-host.suite.ts";
import type { DatabaseSpec } from "../../ports/postgres-host.ts";
import { createServerPostgresHost } from "./server-postgres-host.ts";

describe("databases of projects on an existing server", { skip: missingCluster }, () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-server-"));
  let cluster: TestCluster;
  before(async () => void (cluster = await startTestCluster()));
  after(async () => {
    await cluster.remove();
    rmSync(dir, { recursive: true, force: true });
  });
  const hostFor = (user = cluster.user, hosts: readonly ServerAddress[] = [cluster.primary]) => {
    const [first, ...others] = hosts as [ServerAddress, ...ServerAddress[]];
    const { password } = cluster;
    const server = { hosts: [first, ...others] as const, user, password, database: "postgres", tls: null };
    return createServerPostgresHost({ server, ...optionsIn(dir) });
  };
  const fixture = async () => ({ host: hostFor(), login, isShared: true });

  postgresHostSuite(fixture);
  // Backups use the same code as with one server per project, whose tests always run.
  if (runsAll) postgresHostBackupsSuite(fixture);

  it("leaves what another platform made on the server alone", async () => {
    const spec = newDatabaseSpec();
    const [ours, other] = [hostFor(), hostFor("other_platform")];
    await cluster.primary.query(`create role other_platform superuser login password '${cluster.password}'`);
    const endpoint = await ours.ensure(spec);
    assert.deepEqual(await other.list(), []);
    await other.stop(spec.id);
    await other.destroy(spec.id);
    await assert.rejects(other.ensure(spec), /belongs to another platform/);
    const session = await login(endpoint, loginOf(spec));
    await session.end();
    const foreign = { ...newDatabaseSpec(), id: spec.id };
    await assert.rejects(ours.dropDatabase(foreign, await anotherDatabase()), /does not belong/);
    await ours.destroy(spec.id);
  });

  /** Creates a database of the operator, which admits every role, as is PostgreSQL's default. */
  async function anotherDatabase(): Promise<string> {
    await cluster.primary.query("create database operators_own");
    return "operators_own";
  }

  it("names the databases of others that let every role in", async () => {
    const host = hostFor();
    await host.check();
    assert.deepEqual(host.openDatabases(), ["operators_own"]);
  });

  it("says what is wrong with a login that is no superuser", async () => {
    await cluster.primary.query(`create role too_weak login password '${cluster.password}'`);
    await cluster.primary.query("grant connect on database postgres to too_weak");
    await assert.rejects(hostFor("too_weak").check(), /is not a superuser/);
  });

  it("makes many projects' databases at once", async () => {
    const host = hostFor();
    const specs = Array.from({ length: 6 }, newDatabaseSpec);
    await Promise.all(specs.map((spec) => host.ensure(spec)));
    assert.deepEqual(await host.list(), specs.map(({ id }) => id).toSorted());
    await Promise.all(specs.map(({ id }) => host.destroy(id)));
    assert.deepEqual(await host.list(), []);
  });
});

describe("databases of projects on a server with a standby", { skip: missingCluster }, () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-server-"));
  const spec = newDatabaseSpec();
  let cluster: TestCluster;
  let standby: ClusterServer;
  before(async () => {
    cluster = await startTestCluster();
    standby = await cluster.addStandby();
  });
  after(async () => {
    await cluster.remove();
    rmSync(dir, { recursive: true, force: true });
  });
  const openHost = () => {
    const { user, password, primary } = cluster;
    const hosts = [placeOf(primary), placeOf(standby)] as const;
    return createServerPostgresHost({
      server: { hosts, user, password, database: "postgres", tls: null },
      ...optionsIn(dir),
    });
  };

  it("follows the server that accepts writes, and does not go back to the old one", async () => {
    const host = openHost();
    const endpoint = await host.ensure(spec);
    assert.equal(endpoint.port, cluster.primary.port);
    await asRole(endpoint, spec, "create table kept (a int); insert into kept values (1), (2), (3)");
    assert.ok(host.hasProcess(spec.id));
    const here = async () => (await asRole(standby, spec, "select from kept").catch(() => [])).length === 3;
    await eventually(here, "the standby has the rows");

    await cluster.primary.kill();
    await eventually(() => !host.hasProcess(spec.id), "the loss is noticed");
    assert.deepEqual(await host.observe(spec), { state: "stopped" });
    await assert.rejects(host.ensure(spec), /no server of BERTH_PG_URL accepts writes: .*it is a standby/);

    await standby.query("select pg_promote()");
    const moved = await eventually(() => host.ensure(spec).catch(() => undefined), "the new primary is found");
    assert.equal(moved.port, standby.port);
    assert.ok(host.hasProcess(spec.id));
    const { signal } = new AbortController();
    const counts = [{ table: "public.kept", rows: 3 }];
    assert.deepEqual(await host.countRows(spec, spec.database_name, { signal }), counts);

    await cluster.primary.start();
    const restarted = openHost();
    assert.equal((await restarted.ensure(spec)).port, standby.port);
    const chunks: Buffer[] = [];
    const consume = async (archive: Readable) => void chunks.push(await buffer(archive));
    assert.deepEqual((await restarted.dump(spec, { signal, consume, isCompressed: false })).counts, counts);
    await restarted.createDatabase(spec, "restored_here");
    await restarted.restore(spec, "restored_here", { archive: Readable.from(chunks), signal });
    assert.deepEqual(await restarted.countRows(spec, "restored_here", { signal }), counts);
    assert.deepEqual(await restarted.listDatabases(spec), [spec.database_name, "restored_here"]);
    await restarted.dropDatabase(spec, "restored_here");
    await restarted.destroy(spec.id);
  });
});

describe("databases of projects on a server that asks for TLS", { skip: missingCluster }, () => {
  const dir = mkdtempSync(join(tmpdir(), "berth-server-"));
  let cluster: TestCluster;
  before(async () => void (cluster = await startTestCluster("127.0.0.1", { onlyTls: true })));
  after(async () => {
    await cluster.remove();
    rmSync(dir, { recursive: true, force: true });
  });
  const hostAt = (name: string, tls: ServerTls | null) => {
    const { user, password, primary } = cluster;
    const hosts = [{ host: name, port: primary.port }] as const;
    return createServerPostgresHost({
      server: { hosts, user, password, database: "postgres", tls },
      ...optionsIn(dir),
    });
  };
  const ca = () => readFileSync(cluster.caFile, "utf8");

  it("checks the server's certificate as sslmode says", async () => {
    await assert.rejects(hostAt("localhost", null).check(), /no encryption|pg_hba/);
    await assert.rejects(hostAt("localhost", { mode: "verify-full", ca: null }).check(), /self-signed certificate/);
    await assert.rejects(hostAt("127.0.0.1", { mode: "verify-full", ca: ca() }).check(), /does not match certificate/);
    await hostAt("127.0.0.1", { mode: "verify-ca", ca: ca() }).check();
    await hostAt("127.0.0.1", { mode: "require", ca: null }).check();
  });

  it("secures what Berth itself does there, and the way of its client programs", async () => {
    const tls = { mode: "verify-full", ca: ca() } as const;
    const host = hostAt("localhost", tls);
    const spec = newDatabaseSpec();
    await host.ensure(spec);
    assert.deepEqual(host.tlsOf(spec.id), tls);
    const { signal } = new AbortController();
    const chunks: Buffer[] = [];
    const consume = async (archive: Readable) => void chunks.push(await buffer(archive));
    assert.deepEqual((await host.dump(spec, { isCompressed: false, signal, consume })).counts, []);
    await host.destroy(spec.id);
  });

  it("a client behind a tunnel that asks for TLS itself learns that it needs none there", async () => {
    const { user, password, primary } = cluster;
    const at = { host: "localhost", port: primary.port };
    const tunnel = createServer((client) => {
      void connectServer(at, { mode: "verify-full", ca: ca() }).then((server) => carryServer(client, server));
    }).listen(0, "127.0.0.1");
    await once(tunnel, "listening");
    const { port } = tunnel.address() as AddressInfo;
    const login = {
      PGHOST: "127.0.0.1",
      PGPORT: `${port}`,
      PGUSER: user,
      PGPASSWORD: password,
      PGDATABASE: "postgres",
    };
    const args = ["-XtAc", "select ssl from pg_stat_ssl where pid = pg_backend_pid()"];
    const env = { PATH: systemPath, PGSSLMODE: "prefer", ...login };
    const { stdout } = await runOk({ file: join(findPostgres(), "psql"), args }, { env });
    tunnel.close();
    assert.equal(stdout.trim(), "t");
  });
});

const placeOf = ({ host, port }: ServerAddress): ServerAddress => ({ host, port });

function optionsIn(dir: string) {
  const bin = findPostgres();
  const isRoot = process.getuid?.() === 0;
  return {
    ...{ dir, runBase: dir, bwrap: isRoot ? "/usr/bin/bwrap" : null, uidBase: isRoot ? 36_000 : null },
    ...{ pgDump: join(bin, "pg_dump"), pgRestore: join(bin, "pg_restore") },
  };
}

async function asRole(at: ServerAddress, spec: DatabaseSpec, sql: string) {
  const session = await login(at, loginOf(spec));
  try {
    return await session.query(sql);
  } finally {
    await session.end();
  }
}

/** Logs in like a project's application: at the endpoint, whatever address the suite gives. */
async function login({ host, port }: ServerAddress, { user, password, database }: SuiteLogin): Promise<SuiteSession> {
  const client = new pg.Client({ host, port, user, password, database });
  client.on("error", () => {});
  await client.connect();
  return { query: async (sql) => (await client.query(sql)).rows ?? [], end: () => client.end() };
}
