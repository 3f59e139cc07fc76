import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { testThings } from "../../../test/support/fixtures.ts";
import { platformBeside, testSettings } from "../../../test/support/platform-double.ts";
import { postgresHostDouble, silentStorage, storagesDouble } from "../../../test/support/port-doubles.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { beginChain, chainsOf, expireChain, expiredChains } from "../../features/backups/backups.ts";
import { databaseOf } from "../../features/database/database.ts";
import type { DatabaseHistory } from "../../ports/postgres-host.ts";
import { StorageMissing, type Storage } from "../../ports/storage.ts";
import { deleteExpiredChains } from "./archive-upkeep.ts";
import { archivesTask } from "./archives-task.ts";
import { storeLog } from "./store-log.ts";

const never = new AbortController().signal;

test("a database on the operator's own server has no archive, which says why", async () => {
  const api = await sharedApi();
  const org = await testOrganization(api.database.db, "acme");
  const { project } = await testThings(api.platform, org);
  const postgresHost = postgresHostDouble({ history: () => null, hasProcess: () => true });
  await archivesTask(platformBeside(api, { ports: { postgresHost } })).run(never);
  const path = `/v1/projects/${project.slug}/database/archive`;
  const { body } = await api.call("GET", path, { token: org.member });
  assert.deepEqual([body["status"], body["windows"]], ["unavailable", []]);
  assert.match(String(body["reason"]), /operator's own PostgreSQL server, whose log Berth does not archive/);
});

test("a stop does not wait for a storage that answers nothing to a deletion, which the next start makes", async () => {
  const api = await sharedApi();
  const { db } = api.database;
  const org = await testOrganization(db, "acme");
  const { project } = await testThings(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id, database_id: "dbs_1", storage: "disk" };
  const log = { system: "1", timeline: 1, segment_bytes: 1024, end: 2500, kept_from: 0, at: new Date() };
  await expireChain(db, (await beginChain(db, owner, log)).id);
  const silent = silentStorage();
  const disk = { delete: silent.call, open: (key: string) => Promise.reject(new StorageMissing(key)) };
  const settings = { ...testSettings, backups: { ...testSettings.backups, archiveDays: 0 } };
  const task = (each: Partial<Storage>) => {
    const storages = storagesDouble({ disk: { ...disk, ...each } as unknown as Storage });
    const postgresHost = postgresHostDouble({ history: () => null });
    return archivesTask(platformBeside(api, { ports: { storages, postgresHost }, settings }));
  };
  const stop = new AbortController();
  const run = task({}).run(stop.signal);
  await silent.called;
  stop.abort(new Error("the platform stops"));
  await assert.rejects(run, /the platform stops/);
  const left = async () => (await expiredChains(db)).filter(({ project_id }) => project_id === project.id).length;
  assert.equal(await left(), 1);
  await task({ delete: async () => {} }).run(never);
  assert.equal(await left(), 0);
});

test("what a look that fails has stored replaces nothing that the next one stores, and goes with the archive", async () => {
  const api = await sharedApi();
  const { db } = api.database;
  const org = await testOrganization(db, "acme");
  const { project } = await testThings(api.platform, org);
  const row = await databaseOf(db, org.id, project.id);
  assert.ok(row);
  const log = { system: "1", timeline: 1, segment_bytes: 1024, end: 2500, kept_from: 0, at: new Date() };
  const history = { position: async () => log, readSegment: async () => Buffer.alloc(8) } as unknown as DatabaseHistory;
  const stored = new Set<string>();
  const disk = {
    async put(key: string) {
      if (/(?:00|01)\.zst$/.test(key)) throw new Error("the store is away");
      await sleep(50);
      stored.add(key);
    },
    async open(key: string) {
      if (stored.has(key)) return Readable.from([]);
      throw new StorageMissing(key);
    },
    delete: async (key: string) => void stored.delete(key),
  } as unknown as Storage;
  const platform = platformBeside(api, { ports: { storages: storagesDouble({ disk }) } });
  const count = () => stored.size;
  assert.equal(
    await storeLog(platform, row, { history, signal: never }).then(() => "stored", count),
    1,
    "the look has not left it behind",
  );
  const [chain] = await chainsOf(db, row);
  assert.ok(chain);
  await expireChain(db, chain.id);
  await deleteExpiredChains(platform, never);
  assert.deepEqual([...stored], []);
});
