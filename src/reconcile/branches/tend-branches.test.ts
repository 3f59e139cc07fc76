import assert from "node:assert/strict";
import { test } from "node:test";
import { testThings } from "../../../test/support/fixtures.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { nothingInProgress } from "../../../test/support/nothing-in-progress.ts";
import { postgresHostDouble } from "../../../test/support/port-doubles.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { takeBranch } from "../../features/branches/branches.ts";
import { averageUse } from "../../features/disk/disk.ts";
import { missingDatabase } from "../../kit/part-missing.ts";
import type { DatabaseHistory, DatabaseSpec, PostgresHost } from "../../ports/postgres-host.ts";
import { createResting } from "../databases/databases-task.ts";
import { makeBranch } from "./make-branch.ts";
import { sweepBranches, tendBranches } from "./tend-branches.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme");
const { db } = api.database;
const { project } = await testThings(api.platform, org);
const path = `/v1/projects/${project.slug}/database/branches`;
const endpoint = { host: "/elsewhere", port: 5433, engine_version: "15" };

/** Tends the branch of the project on a host where these instances run; returns the accesses with which it was started. */
async function tended(running: (id: string) => boolean, more: Partial<PostgresHost> = {}): Promise<string[]> {
  const started: string[] = [];
  const ensure = async ({ access, was_ready }: DatabaseSpec) => {
    assert.equal(was_ready, true, "a lost branch must not become an empty database");
    started.push(access);
    return endpoint;
  };
  const observe: PostgresHost["observe"] = async ({ id, access }) =>
    running(id)
      ? { state: "running", endpoint, size_bytes: 2000, connections: 0, intact: access === "open", compacting: false }
      : { state: "stopped" };
  const postgresHost = postgresHostDouble({ ensure, observe, hasProcess: running, ...more });
  await tendBranches(platformBeside(api, { ports: { postgresHost } }), createResting());
  return started;
}

async function branchWith(size_limit_bytes: number) {
  await db.updateTable("database_branch").set({ size_limit_bytes, ready_at: new Date(), access: "open" }).execute();
}
const shown = async () => (await api.call("GET", `${path}/tried`, { token: org.member })).body;

test("starts once the databases of projects run, and its new address is stored", async () => {
  await branchWith(5000);
  assert.deepEqual(await tended(() => false), []);
  assert.deepEqual(await tended((id) => id.startsWith("dbs_")), ["open"]);
  const row = await db.selectFrom("database_branch").select(["host", "port"]).executeTakeFirstOrThrow();
  assert.deepEqual(row, { host: "/elsewhere", port: 5433 });
});

test("gets the address at which it runs, also when the control plane that started it ended before it stored that", async () => {
  const address = () => db.selectFrom("database_branch").select(["host", "port"]).executeTakeFirstOrThrow();
  await db.updateTable("database_branch").set({ port: 5999 }).execute();
  assert.deepEqual(await tended(() => true), []);
  assert.deepEqual(await address(), { host: "/elsewhere", port: 5433 });
});

test("can only be read while it is larger than it may be", async () => {
  await branchWith(1000);
  assert.deepEqual(await tended(() => true), ["read_only"]);
  assert.deepEqual([(await shown())["read_only"], (await shown())["size_bytes"]], [true, 2000]);
  assert.equal((await averageUse(db)).database, 2000, "it counts as a user of the disk");
  await db.updateTable("database_branch").set({ size_limit_bytes: 5000 }).execute();
  assert.deepEqual(await tended(() => true), ["open"]);
  assert.equal((await shown())["read_only"], false);
});

test("is not copied by a worker that has lost it to another one", async () => {
  const set = (change: object) => db.updateTable("database_branch").set(change).execute();
  const take = (owner: string) => takeBranch(db, owner, { inProgress: nothingInProgress, now: new Date() });
  await set({ status: "copying" });
  const branch = (await take("one")) ?? assert.fail("no branch was due");
  await set({ lease_until: new Date(0) });
  await take("two");
  const history = { branch: () => assert.fail("it was copied") } as unknown as DatabaseHistory;
  const running = {
    state: "running",
    endpoint,
    size_bytes: 1,
    connections: 0,
    intact: true,
    compacting: false,
  } as const;
  const postgresHost = postgresHostDouble({ observe: async () => running, history: () => history });
  const lease = { table: "database_branch", id: branch.id, owner: "one", fence: branch.fence } as const;
  const { signal } = new AbortController();
  const making = makeBranch({ platform: platformBeside(api, { ports: { postgresHost } }), branch, lease, signal });
  await assert.rejects(making, /the lease was lost/);
  await set({ status: "ready", lease_owner: null, lease_until: new Date(0) });
});

test("whose data is gone has failed, and what has no row is removed", async () => {
  const ensure = () => Promise.reject(missingDatabase("dbb_1"));
  await tended((id) => id.startsWith("dbs_"), { ensure });
  const { status, failure } = await shown();
  assert.deepEqual([status, (failure as { code: string }).code], ["failed", "part_missing"]);
  const destroyed: string[] = [];
  const { id } = await db.selectFrom("database_branch").select("id").executeTakeFirstOrThrow();
  const list = async () => [id, "dbb_unknown", "dbs_unknown"];
  const postgresHost = postgresHostDouble({ list, destroy: async (each) => void destroyed.push(each) });
  await sweepBranches(platformBeside(api, { ports: { postgresHost } }));
  assert.deepEqual(destroyed, ["dbb_unknown"]);
});

test("is refused on a server of the operator's own, and without a database", async () => {
  const create = (at: string) => api.call("POST", at, { token: org.member, body: { name: "more" } });
  await db.updateTable("project_database").set({ ready_at: new Date() }).execute();
  assert.equal((await create(path)).body["code"], "branches_unavailable");
  await db.deleteFrom("database_branch").execute();
  await db.deleteFrom("project_database").execute();
  assert.equal((await create(path)).body["code"], "no_database");
});
