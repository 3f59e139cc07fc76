import assert from "node:assert/strict";
import { test } from "node:test";
import { platformDouble } from "../../test/support/platform-double.ts";
import { edgeDouble, instanceDouble, postgresHostDouble, runtimeDouble } from "../../test/support/port-doubles.ts";
import type { Db } from "../store/database.ts";
import { EndedAtStart, createEndRequests, createShutdown, endTenants } from "./shutdown.ts";

test("signals within two seconds are one request to end, and a later one ends at once", () => {
  let nowMs = 5000;
  const requests = createEndRequests(() => nowMs);
  const at = (ms: number) => {
    nowMs = ms;
    return requests.add();
  };
  assert.deepEqual([at(5000), at(5000), at(6999), at(7000)], ["first", "repeated", "repeated", "second"]);
});

test("an end requested during a start stops it at its next step and ends what was started, the newest first", async () => {
  const ended: string[] = [];
  const shutdown = createShutdown((line) => ended.push(line));
  const part = (name: string) => shutdown.onEnd(name, async () => void ended.push(name));
  const goOn = Promise.withResolvers<void>();
  const started = shutdown.during(async () => {
    part("database");
    await goOn.promise;
    part("applications");
    part("never started");
  });
  const over = shutdown.run();
  goOn.resolve();
  await assert.rejects(started, EndedAtStart);
  await over;
  assert.deepEqual(ended, ["applications", "database"]);
});

test("a stop ends every application and database, although the edge cannot be ended and the control database is gone", async () => {
  const stopped: string[] = [];
  const stop = async (id: string) => {
    if (id === "dep_1") throw new Error("read-only file system");
    stopped.push(id);
  };
  const instances = ["dep_1", "dep_2", "dep_2"].map((workload_id, ordinal) => instanceDouble({ workload_id, ordinal }));
  const runtime = runtimeDouble({ observe: async () => instances, stop });
  const postgresHost = postgresHostDouble({ list: async () => ["dbs_1"], stop });
  const edge = edgeDouble({ stop: async () => Promise.reject(new Error("the edge does not end")) });
  const gone = () => {
    throw new Error("no connection");
  };
  const db = new Proxy({} as Db, { get: () => gone });
  const platform = platformDouble({ ports: { edge, runtime, postgresHost }, db });
  await assert.rejects(endTenants(platform), /edge does not end.*read-only file system/);
  assert.deepEqual(stopped, ["dep_2", "dbs_1"]);
});
