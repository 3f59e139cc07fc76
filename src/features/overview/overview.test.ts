import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import type { Result } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import { testBuild, testDeployment, testDomain, testProject, testThings } from "../../../test/support/fixtures.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";

const api = await sharedApi();
const org = await testOrganization(api.database.db, "home", { maxProjects: 2000 });

type Overview = Result<"overview.get">;

async function overviewOf(token = org.member): Promise<Overview> {
  const called = await api.call("GET", "/v1/overview", { token });
  assert.equal(called.status, 200, called.text);
  return called.body as unknown as Overview;
}

test("a project is shown with its deployments, replicas, traffic, database, backup and storage", async () => {
  const { db } = api.database;
  const { project } = await testThings(api.platform, org);
  const owner = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
  const live = await testDeployment(api.platform, owner, { build_id, number: 1, status: "active" });
  const failed = await testDeployment(api.platform, owner, { build_id, number: 2, status: "failed" });
  const at = new Date("2026-01-02T03:04:05.678Z");
  await db.updateTable("build").set({ message: "Add cart\n\nWith totals" }).where("id", "=", build_id).execute();
  await db.updateTable("deployment").set({ activated_at: at, finished_at: at }).where("id", "=", live).execute();
  await db.updateTable("deployment").set({ finished_at: at }).where("id", "=", failed).execute();
  await db.updateTable("project").set({ replicas: 2, maintenance_since: at }).where("id", "=", project.id).execute();
  await db
    .insertInto("replica")
    .values({ org_id: org.id, deployment_id: live, ordinal: 0, attempt: 1, state: "running", ready_attempt: 1 })
    .execute();
  await db
    .insertInto("replica")
    .values({
      org_id: org.id,
      deployment_id: live,
      ordinal: 1,
      attempt: 4,
      state: "exited",
      restarts: 3,
      exited_at: new Date(),
    })
    .execute();
  const minute = { ...owner, bucket_seconds: 60, requests: 10, errors: 2 };
  await db
    .insertInto("project_metric")
    .values({ ...minute, at: new Date() })
    .execute();
  await db
    .insertInto("project_metric")
    .values({ ...minute, at: new Date(Date.now() - 2 * 3_600_000) })
    .execute();
  const backup = { id: newId("bak"), status: "completed", origin: "manual", finished_at: at } as const;
  await db
    .insertInto("backup")
    .values({ ...owner, ...backup })
    .execute();
  await db
    .insertInto("disk_use")
    .values({ ...owner, next_at: at, storage_bytes: 4096, database_bytes: 8192, storage_access: "read_only" })
    .execute();

  const { totals, projects } = await overviewOf();
  const committed = { commit: "c".repeat(40), branch: "main", message: "Add cart" };
  const shown = projects.find((each) => each.slug === project.slug);
  assert.deepEqual(shown, {
    ...{
      id: project.id,
      slug: project.slug,
      name: project.slug,
      state: "active",
      url: `http://${project.id}.test:8080`,
    },
    active_deployment: { id: live, number: 1, status: "active", ...committed, at: at.toISOString() },
    last_deployment: { id: failed, number: 2, status: "failed", ...committed, at: at.toISOString() },
    replicas: { ready: 1, wanted: 2 },
    last_hour: { requests: 10, errors: 2, parts: shown?.last_hour.parts },
    database: "ready",
    last_backup: { id: backup.id, status: "completed", at: at.toISOString() },
    storage_bytes: 4096,
    database_bytes: 8192,
    images_bytes: null,
    health: shown?.health,
    attention: ["deploy_failed", "replicas_missing", "maintenance", "storage_over_limit", "hostname_waiting"],
  });
  assert.deepEqual([shown?.health.state, shown?.health.since], ["maintenance", at.toISOString()]);
  const parts = shown?.last_hour.parts ?? [];
  assert.equal(parts.length, 20);
  assert.deepEqual(
    parts.filter(({ requests }) => requests > 0),
    [{ requests: 10, errors: 2 }],
  );
  assert.equal(totals.alerts, null);
  assert.equal((await overviewOf(org.operator)).totals.alerts, 0);
  assert.deepEqual([totals.requests_last_hour, totals.errors_last_hour, totals.storage_bytes], [10, 2, 4096]);
});

test("a hostname that waits, one that points elsewhere, and a certificate that failed or ends soon need attention", async () => {
  const { db } = api.database;
  const own = await testOrganization(db, "names");
  const attach = async (name: string, lost_at: Date | null = null, verified_at: Date | null = new Date()) => {
    const { id } = await testProject(api.platform, own);
    const hostname = await testDomain(api.platform, { org_id: own.id, project_id: id }, `${name}.example.com`);
    const served = { verified_at, lost_at };
    await db.updateTable("domain").set(served).where("hostname", "=", hostname).execute();
    const attention = async () => (await overviewOf(own.member)).projects.find((each) => each.id === id)?.attention;
    return { hostname, attention };
  };
  const certify = (hostname: string, days: number | null) => {
    const [not_before, not_after] = days === null ? [null, null] : [daysFromNow(days - 90), daysFromNow(days)];
    const status = days === null ? "failed" : "active";
    const row = { id: newId("crt"), hostname, challenge: "http-01", status, not_before, not_after } as const;
    return db.insertInto("certificate").values(row).execute();
  };
  assert.deepEqual(await (await attach("waits", null, null)).attention(), ["hostname_waiting"]);
  const lost = await attach("lost", new Date());
  assert.deepEqual(await lost.attention(), ["hostname_lost"]);
  for (const [name, days, expected] of [
    ["good", 60, []],
    ["ending", 10, ["certificate_ending"]],
    ["ended", -1, ["certificate_failed"]],
    ["failed", null, ["certificate_failed"]],
  ] as const) {
    const { hostname, attention } = await attach(name);
    assert.deepEqual(await attention(), []);
    await certify(hostname, days);
    assert.deepEqual(await attention(), expected, name);
  }
});

const daysFromNow = (days: number) => new Date(Date.now() + days * 86_400_000);

test("deleted projects and those of others are not in it", async () => {
  const mine = await testOrganization(api.database.db, "mine");
  const other = await testOrganization(api.database.db, "other");
  const { id } = await testProject(api.platform, mine);
  assert.equal((await overviewOf(mine.member)).projects.length, 1);
  assert.equal((await overviewOf(other.member)).projects.length, 0);
  await api.database.db.updateTable("project").set({ deleted_at: new Date() }).where("id", "=", id).execute();
  assert.equal((await overviewOf(mine.member)).projects.length, 0);
});

test("a thousand projects with an hour of minutes each are one answer", async () => {
  const { db } = api.database;
  const many = await testOrganization(db, "many", { maxProjects: 2000 });
  await sql`
    insert into project (id, org_id, slug, name, hostname, sealed_cron_secret)
    select 'prj_' || lpad(n::text, 26, '0'), ${many.id}, 'p-' || n, 'p', 'p-' || n || '.many.test', '' from generate_series(1, 1000) n`.execute(
    db,
  );
  await sql`
    insert into project_metric (project_id, org_id, bucket_seconds, at, requests)
    select p.id, p.org_id, 60, date_trunc('minute', now()) - make_interval(mins => m), 3
    from project p cross join generate_series(0, 59) m where p.org_id = ${many.id}`.execute(db);
  // The tests' server has no autovacuum, which would have analyzed the tables by now.
  await sql`analyze project, project_metric`.execute(db);
  const { totals, projects } = await overviewOf(many.member);
  assert.equal(projects.length, 1000);
  assert.ok(Math.abs(totals.requests_last_hour - 180_000) <= 3000);
});
