// Drawn with other operation files: only this file tests these rules, but it takes too long for every run. .ci/run draws more files.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import { closeInterrupted, progressOf, takeQueued } from "../src/features/builds/lifecycle-queries.ts";
import { hasComingDeployment } from "../src/features/builds/queries.ts";
import { projectsToRestart, takeDeployment } from "../src/features/deployments/queries.ts";
import { changedWorkloads } from "../src/features/replicas/replicas.ts";
import { changedRoutes } from "../src/features/routes/routes.ts";
import { pushedDeployments } from "../src/features/deployments/serving.ts";
import { countDeployments, countProjects, mostFailing } from "../src/features/platform/queries.ts";
import { selectHealthFacts, selectTraffic } from "../src/features/health/queries.ts";
import { openWork } from "../src/features/status/evidence.ts";
import type { Tx } from "../src/store/database.ts";
import { releaseDeadLeases } from "../src/store/leases.ts";
import { nothingInProgress } from "./support/nothing-in-progress.ts";
import { testDatabase, type TestDatabase } from "./support/database.ts";
import { testBuild, testDeployment, testProject } from "./support/fixtures.ts";
import { testOrganization } from "./support/test-platform.ts";

const projects = 20;
const deploymentsEach = 1000;
// Far more than the number of projects, far fewer than the number of deployments.
const mostRows = 200;

let database: TestDatabase;
let org: { id: string };
let build: string;

before(async () => {
  database = await testDatabase();
  const { db, vault } = database;
  const made = await testOrganization(db, "acme", { maxProjects: projects });
  org = made;
  const platform = { db, vault };
  for (let count = 0; count < projects; count += 1) {
    const owner = { org_id: org.id, project_id: (await testProject(platform, made)).id };
    build = await testBuild(platform, owner, { status: "succeeded" });
    await testDeployment(platform, owner, { build_id: build, number: 1_000_000, status: "active" });
  }
  await multiply();
});
after(() => database.drop());

/** Inserts years of history: many builds, deployments and reported crashes for every project. */
async function multiply(): Promise<void> {
  const { db } = database;
  await sql`insert into build (id, org_id, project_id, number, status, origin, commit, branch, message, lease_owner, created_at, finished_at)
    select b.id || '-' || n, b.org_id, b.project_id, 1000000 + n, 'succeeded', 'push', b.commit, b.branch, b.message, 'gone', now() - n * interval '1 day', now() - n * interval '1 day'
    from build b, generate_series(1, ${deploymentsEach}) n`.execute(db);
  await sql`insert into deployment (id, org_id, project_id, number, status, trigger, build_id, commit, image_ref, image, sealed_variables, lease_owner, created_at, activated_at)
    select d.id || '-' || n, d.org_id, d.project_id, n, 'retired', 'push', d.build_id || '-' || n, d.commit, d.image_ref, d.image, d.sealed_variables, 'gone', now() - n * interval '1 day', now() - n * interval '1 day'
    from deployment d, generate_series(1, ${deploymentsEach}) n`.execute(db);
  await sql`insert into activity (org_id, project_id, action, target, detail, created_at, actor_name, id)
    select org_id, project_id, 'replica.crashed', '', '{"deployment": 1, "replica": 0}', created_at, '', id from deployment`.execute(
    db,
  );
  await sql`analyze`.execute(db);
}

const polls: Readonly<Record<string, (tx: Tx) => Promise<unknown>>> = {
  "leases of deployments": (tx) => releaseDeadLeases(tx, "deployment"),
  "leases of builds": (tx) => releaseDeadLeases(tx, "build"),
  "the progress of a build": (tx) => progressOf(tx, org.id, build),
  "the deployment that a build leads to": (tx) => hasComingDeployment(tx, org.id, build),
  "pushed deployments": (tx) => pushedDeployments(tx, new Date()),
  "builds to claim": (tx) => takeQueued(tx, "me", nothingInProgress),
  "interrupted builds": (tx) =>
    closeInterrupted(tx, { stage: "build", code: "x", summary: "", hint: "", log_tail: [] }, []),
  "deployments to claim": (tx) => takeDeployment(tx, "me", nothingInProgress),
  "projects to restart": (tx) => projectsToRestart(tx),
  "routes of the edge": (tx) => changedRoutes(tx, null),
  "desired workloads": (tx) => changedWorkloads(tx, "here", { since: null }),
  "the health of projects": (tx) => selectHealthFacts(tx, null),
  "failed requests": (tx) => selectTraffic(tx),
  "open work": (tx) => openWork(tx),
  "the operator's projects": (tx) => countProjects(tx),
  "deployments of today": (tx) => countDeployments(tx),
  "the projects that fail most": (tx) => mostFailing(tx),
};

for (const [name, poll] of Object.entries(polls)) {
  test(`the query for ${name} does not read the whole history`, async () => {
    await database.db.transaction().execute(async (tx) => {
      const earlier = await rowsRead(tx);
      await poll(tx);
      const read = (await rowsRead(tx)) - earlier;
      assert.ok(read <= mostRows, `${read} rows of builds, deployments and activity were read`);
    });
  });
}

async function rowsRead(tx: Tx): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint as count from pg_stat_xact_user_tables
    where relname in ('build', 'deployment', 'activity')`.execute(tx);
  return rows[0]?.count ?? 0;
}
