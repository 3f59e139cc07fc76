import assert from "node:assert/strict";
import { test } from "node:test";
import { platformDouble } from "../../test/support/platform-double.ts";
import { edgeDouble, instanceDouble, postgresHostDouble, runtimeDouble } from "../../test/support/port-doubles.ts";
import type { Db } from "../store/database.ts";
import { endTenants } from "./end-tenants.ts";

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
