// Drawn with other data files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { sql } from "kysely";
import { missingPart } from "../../src/adapters/postgres-host-local/test-fixture.ts";
import { requestPurge } from "../../src/features/purges/purges.ts";
import { DatabaseWorkFailed } from "../../src/ports/postgres-host.ts";
import type { Platform } from "../../src/reconcile/platform.ts";
import { applyFinalRetention, deleteExpiredBackups } from "../../src/reconcile/backups/backup-upkeep.ts";
import { purgesTask } from "../../src/reconcile/purges/purges-task.ts";
import { eventually } from "../support/eventually.ts";
import { startBackupPlatform, type BackupPlatform } from "../support/backups.ts";
import { testBuild, testDeployment } from "../support/fixtures.ts";
import { builderDouble, logStoreDouble, repositoriesDouble, runtimeDouble } from "../support/port-doubles.ts";

// A purge keeps the rows that an audit needs, the final backup, and the change rows that notify edges and clients of the purge.
const keptTables = ["activity", "approval", "backup", "change", "project_purge", "route_change"];

/** Ports that record what a purge deletes. The next call of the step named in `state.failing` throws once. */
function recordingPorts() {
  const deleted: string[] = [];
  const state = { failing: "" };
  const step = (name: string) => async (subject: unknown) => {
    if (state.failing === name) {
      state.failing = "";
      throw new Error("the process ended here");
    }
    deleted.push(`${name} ${typeof subject === "string" ? subject : JSON.stringify(subject)}`);
  };
  const ports = {
    runtime: runtimeDouble({
      remove: step("workload"),
      removeImage: step("image"),
      removeStorage: step("storage"),
    }),
    builder: builderDouble({ images: async () => ["sha256:1"], clearCaches: step("caches") }),
    repositories: repositoriesDouble({ remove: step("repository") }),
    logStore: logStoreDouble({ remove: step("logs") }),
  };
  return { deleted, state, ports };
}

describe("a purge", { skip: missingPart }, () => {
  const { deleted, state, ports } = recordingPorts();
  let running: BackupPlatform;
  let platform: Platform;

  before(async () => {
    running = await startBackupPlatform();
    platform = { ...running.platform, ports: { ...running.platform.ports, ...ports } };
    await running.startTask((wake) => purgesTask(platform, wake));
  });
  after(() => running?.close());

  const remove = (slug: string, query = "") => running.call("DELETE", `/v1/projects/${slug}${query}`);
  async function deletedProject() {
    const project = await running.project();
    await project.query("create table t as select i from generate_series(1, 500) i");
    await running.backup(project.slug);
    const owner = { org_id: running.org.id, project_id: project.id };
    const build_id = await testBuild(running.api.platform, owner, { status: "succeeded" });
    await testDeployment(running.api.platform, owner, { build_id, number: 1, status: "retired" });
    return { ...project, owner };
  }

  it("is refused for a project that is not deleted", async () => {
    const { slug } = await deletedProject();
    assert.deepEqual((await remove(slug, "?purge=true")).body["code"], "conflict");
    assert.equal((await running.call("GET", `/v1/projects/${slug}`)).body["state"], "active");
  });

  it("keeps a verified final backup, frees the slug, continues after a failure, and deletes everything else", async () => {
    const { slug, id, owner } = await deletedProject();
    await remove(slug);
    state.failing = "repository";
    const purging = remove(slug, "?purge=true");
    const gone = await purging;
    assert.deepEqual([gone.status, gone.body["purged"]], [200, true], gone.text);
    for (const what of ["workload", "image", "storage", "caches", "repository", "logs"])
      assert.ok(
        deleted.some((line) => line.startsWith(`${what} `)),
        what,
      );
    const final = await running.call("GET", `/v1/backups/${String(gone.body["final_backup_id"])}`);
    const { status, origin, verification } = final.body as { verification: { status: string } } & Record<
      string,
      unknown
    >;
    assert.deepEqual([status, origin, verification.status], ["completed", "final", "verified"]);
    const { rows } = await sql<{ table_name: string }>`select table_name from information_schema.columns
      where table_schema = 'public' and column_name = 'project_id'`.execute(platform.db);
    for (const { table_name: table } of rows) {
      const left = await sql`select 1 from ${sql.table(table)} where project_id = ${id}`.execute(platform.db);
      const isKept = keptTables.includes(table);
      assert.ok(isKept || left.rows.length === 0, `${table} still has rows of the purged project`);
    }
    assert.equal((await running.call("GET", `/v1/projects/${slug}`)).status, 404);
    const listed = await running.call("GET", "/v1/projects?deleted=true");
    assert.ok(!listed.text.includes(id));
    const again = await running.call("POST", "/v1/projects", { slug, name: "Again" });
    assert.equal(again.status, 201, again.text);
    const backups = await platform.db
      .selectFrom("backup")
      .select("id")
      .where("project_id", "=", owner.project_id)
      .execute();
    assert.deepEqual(backups, [{ id: gone.body["final_backup_id"] }]);
    const other = await running.project();
    const restored = await running.call("POST", `/v1/projects/${other.slug}/restore`, { backup_id: backups[0]?.id });
    assert.equal(restored.status, 201, restored.text);
    const count = await other.query("select count(*)::int as count from t", String(restored.body["database"]));
    assert.deepEqual(count, [{ count: 500 }]);
    const kept = async (days: number) => {
      const clock = { now: () => new Date(Date.now() + days * 86_400_000) };
      await applyFinalRetention({ ...platform, clock });
      await deleteExpiredBackups(platform, new AbortController().signal);
      return (await running.call("GET", `/v1/backups/${backups[0]?.id}`)).status;
    };
    assert.deepEqual([await kept(364), await kept(366)], [200, 404]);
  });

  it("blocks an undelete, and fails without deleting anything when the final backup fails", async () => {
    const { slug, owner } = await deletedProject();
    await remove(slug);
    const before = deleted.length;
    const refuse = () => Promise.reject(new DatabaseWorkFailed("refused", "It is broken."));
    const { dump } = platform.ports.postgresHost;
    const gate = Promise.withResolvers<void>();
    Object.assign(platform.ports.postgresHost, { dump: () => gate.promise.then(refuse) });
    const purging = remove(slug, "?purge=true");
    // Before the purge has a row, the undelete would succeed and the purge would be refused.
    const isRequested = () =>
      platform.db
        .selectFrom("project_purge")
        .select("id")
        .where("project_id", "=", owner.project_id)
        .executeTakeFirst();
    await eventually(isRequested, "the purge has a row");
    const held = await running.call("POST", `/v1/projects/${slug}/undelete`);
    gate.resolve();
    assert.equal(held.body["code"], "operation_in_progress", held.text);
    const failed = await purging;
    Object.assign(platform.ports.postgresHost, { dump });
    assert.deepEqual([failed.status, failed.body["code"]], [409, "conflict"]);
    assert.match(failed.text, /nothing was deleted: It is broken/);
    // The sentence quotes the database.
    assert.equal(failed.body["foreign"], true);
    assert.equal(deleted.length, before);
    assert.equal((await running.call("POST", `/v1/projects/${slug}/undelete`)).status, 200);
  });

  it("starts automatically once a project has been deleted for the configured number of days, and not before", async () => {
    const [long, short] = [await deletedProject(), await deletedProject()];
    for (const { slug } of [long, short]) await remove(slug);
    const { db } = platform;
    const aged = db.updateTable("project").where("id", "=", long.id);
    await aged.set({ deleted_at: sql`now() - interval '31 days'` }).execute();
    const task = purgesTask({ ...platform, settings: { ...platform.settings, purgeDays: 30 } }, () => {});
    await task.run(new AbortController().signal);
    await task.settle?.();
    // The task that already runs may have claimed the purge.
    const isGone = async () => (await running.call("GET", `/v1/projects/${long.slug}`)).status === 404;
    await eventually(isGone, "the project is purged");
    assert.equal((await running.call("GET", `/v1/projects/${short.slug}`)).body["state"], "deleted");
    const requested = db.selectFrom("activity").select("actor_name").where("target", "=", long.slug);
    const [event] = await requested.where("action", "=", "project.purge_requested").execute();
    assert.equal(event?.actor_name, "berth");
  });

  it("has one row, also when it is requested several times", async () => {
    const { owner, slug } = await deletedProject();
    await remove(slug);
    const request = () =>
      platform.db.transaction().execute((tx) => requestPurge(tx, platform.wakeups, { ...owner, requested_by: "test" }));
    const ids = await Promise.all([request(), request(), request()]);
    assert.equal(new Set(ids).size, 1);
  });
});
