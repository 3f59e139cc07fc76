import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import type { KyselyPlugin } from "kysely";
import { deployedProject } from "../../../test/support/cron-platform.ts";
import { testDatabase, type TestDatabase } from "../../../test/support/database.ts";
import { markReady } from "../../features/deployments/deployments.ts";
import { silentLog } from "../../kit/log.ts";
import { systemClock } from "../../ports/clock.ts";
import type { Edge, RouteTable } from "../../ports/edge.ts";
import { openVault, type Vault } from "../../store/vault.ts";
import { syncEdge } from "./edge-sync.ts";
import { appsTask } from "../apps/apps-task.ts";
import type { Platform } from "../platform.ts";

const projects = 12;
let database: TestDatabase;
let vault: Vault;
let folder: string;
let app: Server;
const deployments: { org_id: string; deployment_id: string }[] = [];

before(async () => {
  database = await testDatabase();
  folder = await mkdtemp(join(tmpdir(), "berth-edge-sync-"));
  vault = openVault({ keyFile: join(folder, "key") });
  app = createServer((_, response) => response.end("page"));
  await new Promise<void>((done) => app.listen(0, "127.0.0.1", done));
  for (let count = 0; count < projects; count += 1) deployments.push(await deployedProject({ db: database.db, vault }));
});
after(async () => {
  app.close();
  await database.drop();
  await rm(folder, { recursive: true });
});
beforeEach(() => database.db.updateTable("replica").set({ ready_attempt: 0 }).execute());

/** A world whose edge takes tables as slowly as a test wants. */
function worldWith(apply: Edge["apply"], plugin?: KyselyPlugin): Platform {
  const address = { host: "127.0.0.1", port: (app.address() as AddressInfo).port };
  const running = { ordinal: 0, attempt: 1, state: "running", address, started_at: new Date(), exit: null };
  const runtime = {
    observe: async (id: string) => [{ ...running, workload_id: id }],
    list: async () => deployments.map((each) => each.deployment_id),
  };
  return {
    db: plugin === undefined ? database.db : database.db.withPlugin(plugin),
    vault,
    clock: systemClock,
    log: silentLog,
    settings: { health: { timeoutMs: 1000 } },
    ports: { edge: { apply }, runtime },
  } as unknown as Platform;
}

const readyIn = (table: RouteTable) => table.routes.filter((route) => route.targets.length > 0).length;
const ready = (count: number) =>
  Promise.all(
    deployments
      .slice(0, count)
      .map(({ org_id, deployment_id }) => markReady(database.db, { org_id, deployment_id, ordinal: 0, attempt: 1 })),
  );

test("callers who arrive while a table is on its way share the next, which has what they committed", async () => {
  const taken: RouteTable[] = [];
  const first = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  const platform = worldWith(async (table) => {
    taken.push(table);
    arrived.resolve();
    if (taken.length === 1) await first.promise;
  });
  const earlier = syncEdge(platform);
  await arrived.promise;
  await ready(3);
  const later = [syncEdge(platform), syncEdge(platform), syncEdge(platform)];
  first.resolve();
  assert.equal(readyIn(await earlier), 0);
  for (const table of await Promise.all(later)) assert.equal(table, taken[1]);
  assert.deepEqual(taken.map(readyIn), [0, 3]);
  assert.ok((taken[1] as RouteTable).version > (taken[0] as RouteTable).version);
});

test("a table that the edge did not take is the fault of its callers' alone", async () => {
  let count = 0;
  const platform = worldWith(async () => {
    count += 1;
    if (count === 1) throw new Error("the edge is away");
  });
  const failing = syncEdge(platform);
  const next = syncEdge(platform);
  await assert.rejects(failing, /away/);
  assert.ok(await next);
  assert.ok(await syncEdge(platform));
  assert.equal(count, 3);
});

test("a table costs as many queries for many projects as for one", async () => {
  let queries = 0;
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => {
      queries += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  await syncEdge(worldWith(async () => {}, counting));
  assert.ok(queries < projects, `${queries} queries`);
});

test("replicas that become healthy are looked at together, and their edge is told of many at once", async () => {
  const taken: RouteTable[] = [];
  const platform = worldWith(async (table) => {
    taken.push(table);
    if (taken.length > 1) return;
    // Nobody waits for the edge before he has been looked at.
    while ((await readyCount()) < projects) await new Promise((resolve) => setTimeout(resolve, 5));
  });
  await appsTask(platform).run(new AbortController().signal);
  assert.equal(readyIn(taken.at(-1) as RouteTable), projects);
  assert.ok(taken.length <= 3, `${taken.length} tables`);
});

async function readyCount(): Promise<number> {
  const rows = await database.db.selectFrom("replica").select("ordinal").where("ready_attempt", "=", 1).execute();
  return rows.length;
}
