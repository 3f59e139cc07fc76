// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdtempSync, rmSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pastaLacks } from "../support/open-tun.ts";
import { drawCases } from "../support/draw-cases.ts";
import { createApp, startPlatform, type Place, type TestPlatform } from "./platform.ts";
import { findProcess, processesNaming } from "./processes.ts";
import { eventually } from "../support/eventually.ts";
import { missingCluster, startTestCluster, type ClusterServer, type TestCluster } from "../support/postgres-cluster.ts";

// A typical application: npm's `pg`, a build that reads the database, a migration in the release phase, a connection through DATABASE_URL.
const visits: Record<string, string> = {
  "package.json": JSON.stringify({
    name: "visits",
    private: true,
    scripts: { build: "node read.js" },
    dependencies: { pg: "8.23.1" },
  }),
  Procfile: "web: node server.js\nrelease: node migrate.js\n",
  "read.js": `const client = new (require("pg").Client)({ connectionString: process.env.DATABASE_URL });
client.connect().then(() => client.query("select 6 * 7 as n")).then(({ rows }) => console.log("the build read", rows[0].n)).then(() => client.end());
`,
  "migrate.js": `const { Client } = require("pg");
(async () => {
  const client = new Client({ connectionString: process.env.DATABASE_URL });
  await client.connect();
  await client.query("create table if not exists visit (id serial primary key, at timestamptz not null default now())");
  console.log("migrated as", (await client.query("select current_user")).rows[0].current_user.length, "characters");
  await client.end();
})();
`,
  "server.js": `const http = require("node:http");
const { Client } = require("pg");
async function query(connectionString, sql) {
  // A server that rejects this application may drop its packets, so the connection attempt needs a short timeout.
  const connectionTimeoutMillis = connectionString === process.env.OTHER_URL ? 3000 : 60_000;
  const client = new Client({ connectionString, connectionTimeoutMillis });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}
const answers = {
  "/visit": () => query(process.env.DATABASE_URL, "insert into visit default values returning id").then(([row]) => row.id),
  "/count": () => query(process.env.DATABASE_URL, "select count(*)::int as count from visit").then(([row]) => row.count),
  "/url": () => process.env.DATABASE_URL,
  "/other-url": () => process.env.OTHER_URL,
  "/other": () => query(process.env.OTHER_URL, "select 1").then(() => "reached"),
};
http.createServer(async (request, response) => {
  const answer = answers[request.url];
  if (!answer) return response.end("hello");
  try {
    response.end(String(await answer()));
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error.code ?? error.message));
  }
}).listen(process.env.PORT, process.env.HOST);
`,
};

const isRoot = process.getuid?.() === 0;
const ordinaryUid = 54_321;

const inNetwork = (network: "veth" | "shared") => {
  const skip = !isRoot && network === "veth" ? "veth needs root" : false;
  test(`a database in network mode ${network}, below a closed folder`, { skip }, async (t) => {
    const closed = mkdtempSync(join(tmpdir(), "berth-closed-"));
    chmodSync(closed, 0o700);
    const platform = await startPlatform({ BERTH_NETWORK: network }, { dataDir: join(closed, "data") });
    try {
      const found = await networkOf(platform);
      if (found !== network) return t.skip(`${network} does not work on this machine (${found} is used)`);
      await assertDatabaseWorks(platform);
      await assertDatabasesAreApart(platform, network);
      if (network === "veth") await assertSurvivesKills(platform);
    } finally {
      await platform.destroy();
      rmSync(closed, { recursive: true, force: true });
    }
    return undefined;
  });
};

const ofUser = (user: string, hasTun: boolean, skip: false | string) => {
  test(`a database of ${user}`, { skip }, async () => {
    const home = mkdtempSync(join(tmpdir(), "berth-home-"));
    chownSync(home, ordinaryUid, ordinaryUid);
    const place: Place = { dataDir: join(home, ".berth"), uid: ordinaryUid, hasTun };
    const platform = await startPlatform({ HOME: home }, place);
    try {
      const network = await networkOf(platform);
      if (hasTun) assert.equal(network, "pasta");
      await assertDatabaseWorks(platform);
      if (hasTun) await assertDatabasesAreApart(platform, network);
      const foreign = processesNaming(platform.dataDir).filter((each) => each.uid !== ordinaryUid);
      assert.deepEqual(foreign, [], "all processes of the platform run as that user");
    } finally {
      await platform.destroy();
      rmSync(home, { recursive: true, force: true });
    }
  });
};

/** As root, where sandboxes have their own network, the operator's primary and standby listen on an address of this machine. */
const onServer = () => {
  test("databases on an existing server with a standby", { skip: missingCluster }, async () => {
    const address = isRoot ? ownAddress() : undefined;
    const cluster = await startTestCluster(address, { onlyTls: address !== undefined });
    try {
      await assertServerWorks(cluster, address);
    } finally {
      await cluster.remove();
    }
  });
};

async function assertServerWorks(cluster: TestCluster, address: string | undefined): Promise<void> {
  const standby = await cluster.addStandby();
  const places = [cluster.primary, standby].map(
    ({ host, port }) => `${address === undefined ? encodeURIComponent(cluster.socketDir) : host}:${port}`,
  );
  const tls = address === undefined ? "" : `?sslmode=verify-full&sslrootcert=${cluster.caFile}`;
  const BERTH_PG_URL = `postgresql://${cluster.user}:${cluster.password}@${places.join(",")}/postgres${tls}`;
  const platform = await startPlatform({ BERTH_PG_URL });
  try {
    const { body } = await platform.call<{ platform: { missing: { part: string }[] } }>("GET", "/v1/me");
    assert.ok(body.platform.missing.some(({ part }) => part === "database_servers"));
    await assertDatabaseWorks(platform);

    await assertBackupsWork(platform);

    await assertFollowsPrimary(platform, { cluster, standby });
  } finally {
    await platform.destroy();
  }
}

const places = [
  () => inNetwork("veth"),
  onServer,
  () => inNetwork("shared"),
  () => ofUser("an ordinary user", false, isRoot ? false : "these tests are run by an ordinary user already"),
  () => ofUser("an ordinary user with pasta", true, pastaLacks),
];
for (const declare of drawCases(places, 1)) declare();

/** Creates a database before the first push, migrates it in the release phase, and checks that its rows survive a full restart. */
async function assertDatabaseWorks(platform: TestPlatform): Promise<void> {
  const app = await createApp(platform, "visits", visits);
  const made = await platform.call("POST", "/v1/projects/visits/database");
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const pushed = await app.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  assert.match(pushed.stderr, /the build read 42/);
  assert.match(pushed.stderr, /migrated as \d+ characters/);
  assert.deepEqual(await ask(platform, "/visit"), "200 1");
  assert.equal(
    (await platform.call("POST", "/v1/projects/visits/database")).status,
    200,
    "a second creation changes nothing",
  );
  await platform.end("SIGINT");
  await platform.restart();
  await eventually(async () => (await ask(platform, "/count")) === "200 1", "the row is there after a restart");
}

async function assertDatabasesAreApart(platform: TestPlatform, network: string): Promise<void> {
  const other = await createApp(platform, "other", visits);
  await platform.call("POST", "/v1/projects/other/database");
  const theirs = new URL((await platform.visit("visits", "/url")).body);
  const pushed = await other.push();
  assert.equal(pushed.exitCode, 0, pushed.stderr);
  const mine = new URL((await platform.visit("other", "/url")).body);
  // Connect to the other project's database with this project's credentials.
  const knocking = new URL(mine);
  [knocking.host, knocking.pathname] = [theirs.host, theirs.pathname];
  assert.notEqual(await tryOther(platform, knocking), "reached");
  // The other project's own credentials fail, too, unless sandboxes share the machine's network.
  const leaked = await tryOther(platform, theirs);
  if (network !== "shared") assert.notEqual(leaked, "reached");
}

async function tryOther(platform: TestPlatform, url: URL): Promise<string> {
  await platform.call("PUT", "/v1/projects/other/env/OTHER_URL", { value: url.href });
  const inForce = async () => (await platform.visit("other", "/other-url")).body === url.href;
  await eventually(inForce, "the application has the variable");
  return (await platform.visit("other", "/other")).body;
}

async function assertSurvivesKills(platform: TestPlatform): Promise<void> {
  const postmaster = () =>
    findProcess((line) => /\/postgres /.test(line) && line.includes(`${platform.dataDir}/databases/`));
  const first = postmaster();
  assert.ok(first, "the database server of the project runs");
  process.kill(first.pid, "SIGKILL");
  await eventually(async () => (await ask(platform, "/count")) === "200 1", "the killed server is started again");
  await platform.end("SIGKILL");
  assert.equal(await ask(platform, "/count"), "200 1", "databases outlive the control plane");
  await platform.restart();
  assert.equal(await ask(platform, "/visit"), "200 2");
}

async function assertBackupsWork(platform: TestPlatform): Promise<void> {
  const path = "/v1/projects/visits";
  const { body: made } = await platform.call<{ id: string }>("POST", `${path}/backups`);
  const backup = async () =>
    (await platform.call<{ status: string; verification: { status: string } | null }>("GET", `/v1/backups/${made.id}`))
      .body;
  await eventually(async () => (await backup()).status === "completed", "the backup is completed");
  await platform.call("POST", `/v1/backups/${made.id}/verify`);
  assert.equal((await backup()).verification?.status, "verified");
  const { body: restored } = await platform.call<{ database: string }>("POST", `${path}/restore`, {});
  const sql = "select count(*)::int as n from visit";
  const asked = { sql, database: restored.database };
  assert.deepEqual((await platform.call<{ rows: unknown }>("POST", `${path}/database/query`, asked)).body.rows, [[1]]);
}

async function assertFollowsPrimary(
  platform: TestPlatform,
  { cluster, standby }: { readonly cluster: TestCluster; readonly standby: ClusterServer },
): Promise<void> {
  const caughtUp = async () => {
    const [{ at }] = (await cluster.primary.query("select pg_current_wal_lsn() as at")) as [{ at: string }];
    const [row] = await standby.query(`select pg_last_wal_replay_lsn() >= '${at}' as is`);
    return row?.["is"] === true;
  };
  await eventually(caughtUp, "the standby has replayed all changes");
  await cluster.primary.kill();
  await standby.query("select pg_promote()");
  const follows = async () => {
    const { body } = await platform.visit("visits", "/url");
    return body.includes(`:${standby.port}/`) && (await ask(platform, "/count")) === "200 1";
  };
  await eventually(follows, "the application uses the promoted server");
}

function ownAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}

async function ask(platform: TestPlatform, path: string): Promise<string> {
  const { status, body } = await platform.visit("visits", path);
  return `${status} ${body}`;
}

async function networkOf(platform: TestPlatform): Promise<string> {
  const { body } = await platform.call<{ platform: { network: string } }>("GET", "/v1/me");
  return body.platform.network;
}
