import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { testThings } from "../../../test/support/fixtures.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { postgresHostDouble, storagesDouble } from "../../../test/support/port-doubles.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { databaseOf } from "../../features/database/database.ts";
import type { DatabaseHistory } from "../../ports/postgres-host.ts";
import type { Storage } from "../../ports/storage.ts";
import { archivesTask } from "./archives-task.ts";
import { storeLog } from "./store-log.ts";

test("a database on the operator's own server has no archive, which says why", async () => {
  const api = await sharedApi();
  const org = await testOrganization(api.database.db, "acme");
  const { project } = await testThings(api.platform, org);
  const postgresHost = postgresHostDouble({ history: () => null, hasProcess: () => true });
  await archivesTask(platformBeside(api, { ports: { postgresHost } })).run(new AbortController().signal);
  const path = `/v1/projects/${project.slug}/database/archive`;
  const { body } = await api.call("GET", path, { token: org.member });
  assert.deepEqual([body["status"], body["windows"]], ["unavailable", []]);
  assert.match(String(body["reason"]), /operator's own PostgreSQL server, whose log Berth does not archive/);
});

test("a look that fails ends with all that it stores, so that nothing of it replaces what the next one stores", async () => {
  const api = await sharedApi();
  const org = await testOrganization(api.database.db, "acme");
  const { project } = await testThings(api.platform, org);
  const row = await databaseOf(api.database.db, org.id, project.id);
  assert.ok(row);
  const log = { system: "1", timeline: 1, segment_bytes: 1024, end: 1500, kept_from: 0, at: new Date() };
  const history = { position: async () => log, readSegment: async () => Buffer.alloc(8) } as unknown as DatabaseHistory;
  const ended: string[] = [];
  const put: Storage["put"] = async (key) => {
    if (key.endsWith("0.zst")) throw new Error("the store is away");
    await sleep(50);
    ended.push("the other segment");
    return { size_bytes: 8 };
  };
  const platform = platformBeside(api, {
    ports: { storages: storagesDouble({ disk: { put } as unknown as Storage }) },
  });
  const look = storeLog(platform, row, history).finally(() => ended.push("the look"));
  await assert.rejects(look, /the store is away/);
  assert.deepEqual(ended, ["the other segment", "the look"]);
});
