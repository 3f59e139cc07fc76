import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "kysely";
import {
  deleteOldActivity,
  deleteOldBuilds,
  deleteOldChanges,
  deleteOldDeployments,
} from "../src/features/activity/activity.ts";
import { deleteOldAlerts } from "../src/features/alerts/queries.ts";
import { expireApprovals } from "../src/features/approvals/queries.ts";
import { takeOperation } from "../src/features/backups/operations.ts";
import { closeInterrupted, interrupted, takeQueued } from "../src/features/builds/builds.ts";
import {
  certificatesMark,
  changedHostnames,
  createEdgeCertificates,
} from "../src/features/certificates/certificates.ts";
import { claimDue, plannedRenewals, recentOrders, servingCertificates } from "../src/features/certificates/queries.ts";
import type { HandlerPlatform } from "../src/features/context.ts";
import {
  activeDeployments,
  adoptRuns,
  closeLostRuns,
  lockDueJobs,
  nextMinute,
} from "../src/features/cron/lifecycle-queries.ts";
import { wantedDatabases } from "../src/features/database/queries.ts";
import { deadTunnels, deleteOldTunnels } from "../src/features/database/tunnel-queries.ts";
import { projectsToRestart, pushedDeployments, takeDeployment } from "../src/features/deployments/deployments.ts";
import { takeDueProject } from "../src/features/disk/queries.ts";
import { takeDueChecks } from "../src/features/domains/check-queries.ts";
import { deleteOldFollowDeliveries, nextFetchMs, takeFollow, takeStatus } from "../src/features/follow/queries.ts";
import { selectHealthFacts, selectTraffic } from "../src/features/health/queries.ts";
import { deleteEndedKeys } from "../src/features/idempotency/idempotency.ts";
import { claimPruning } from "../src/features/images/images.ts";
import { claimDuePageProbes, schedulePageProbes } from "../src/features/metrics/metrics.ts";
import { pruneMetrics } from "../src/features/metrics/sampling.ts";
import { endNotifications, nextDueMs, takeNotification } from "../src/features/notifications/queries.ts";
import { deleteExpiredNames } from "../src/features/projects/projects.ts";
import { takePurge } from "../src/features/purges/purges.ts";
import { changedWorkloads } from "../src/features/replicas/replicas.ts";
import { changedRoutes, hasOpenRequests } from "../src/features/routes/routes.ts";
import { closeUnopened, deleteOldRuns, takeRun } from "../src/features/runs/queries.ts";
import { backupAges, cronLateness, lateNotifications, openWork } from "../src/features/status/evidence.ts";
import { deleteOldDeliveries, nextDeliveryMs, takeDelivery } from "../src/features/webhooks/webhooks.ts";
import type { Db, Tx } from "../src/store/database.ts";
import { releaseDeadLeases } from "../src/store/leases.ts";
import type { Vault } from "../src/store/vault.ts";
import { testDatabase, type TestDatabase } from "./support/database.ts";
import { runsAll } from "./support/draw-cases.ts";
import { eventually } from "./support/eventually.ts";
import { testBuild, testDeployment, testProject } from "./support/fixtures.ts";
import { nothingInProgress } from "./support/nothing-in-progress.ts";
import { testOrganization } from "./support/test-platform.ts";

const history = runsAll ? 100_000 : 10_000;
/** Far more rows than one project needs, far fewer than its history. */
const most = 200;
const owner = "test";
const now = new Date();
const kept = { days: 400, perProject: 200 };

/** Queries that the reconcilers run every few seconds, also when there is no work. */
const queries: Readonly<Record<string, (db: Db) => Promise<unknown>>> = {
  adoptRuns: (db) => adoptRuns(db, owner, 100),
  certificatesMark: (db) => certificatesMark(db),
  changedHostnames: (db) => changedHostnames(db, null, true),
  changedRoutes: (db) => changedRoutes(db, null),
  closeInterrupted: (db) => closeInterrupted(db, interrupted, []),
  closeLostRuns: (db) => closeLostRuns(db, now),
  deleteEndedKeys: (db) => deleteEndedKeys(db, now),
  schedulePageProbes: (db) => schedulePageProbes(db, 300),
  expireApprovals: (db) => expireApprovals(db, now),
  hasOpenRequests: (db) => hasOpenRequests(db, ["127.0.0.1:3000"]),
  lockDueJobs: (db) => lockDueJobs(db as never, now, 100),
  nextDueMs: (db) => nextDueMs(db),
  nextMinute: (db) => nextMinute(db),
  projectsToRestart: (db) => projectsToRestart(db),
  pushedDeployments: (db) => pushedDeployments(db, now),
  releaseDeadLeasesOfBuilds: (db) => releaseDeadLeases(db, "build"),
  releaseDeadLeasesOfDeployments: (db) => releaseDeadLeases(db, "deployment"),
  releaseDeadLeasesOfNotifications: (db) => releaseDeadLeases(db, "notification"),
  releaseDeadLeasesOfOperations: (db) => releaseDeadLeases(db, "backup_operation"),
  takeDeployment: (db) => takeDeployment(db, owner, nothingInProgress),
  takeDueChecks: (db) => takeDueChecks(db, 10),
  claimDuePageProbes: (db) => claimDuePageProbes(db, { everySeconds: 300, limit: 10 }),
  takeNotification: (db) => takeNotification(db, owner, ["outbox"], nothingInProgress),
  takeOperation: (db) => takeOperation(db, owner, nothingInProgress),
  nextDeliveryMs: (db) => nextDeliveryMs(db),
  releaseDeadLeasesOfDeliveries: (db) => releaseDeadLeases(db, "webhook_delivery"),
  takeDelivery: (db) => takeDelivery(db, owner, nothingInProgress, []),
  takePurge: (db) => takePurge(db, owner, nothingInProgress),
  takeQueued: (db) => takeQueued(db, owner, nothingInProgress),
  claimDueCertificate: (db) => claimDue(db, owner, nothingInProgress),
  claimPruning: (db) => claimPruning(savepoints(db), home, { images: ["sha256:0", "sha256:old"], owner }),
  closeUnopened: (db) => closeUnopened(db),
  deadTunnels: (db) => deadTunnels(db),
  deleteExpiredNames: (db) => deleteExpiredNames(db),
  deleteOldActivity: (db) => deleteOldActivity(db, kept),
  deleteOldAlerts: (db) => deleteOldAlerts(db as never),
  deleteOldBuilds: (db) => deleteOldBuilds(db, kept),
  deleteOldChanges: (db) => deleteOldChanges(db),
  deleteOldDeliveries: (db) => deleteOldDeliveries(db),
  deleteOldDeployments: (db) => deleteOldDeployments(savepoints(db), kept),
  deleteOldFollowDeliveries: (db) => deleteOldFollowDeliveries(db),
  deleteOldRuns: (db) => deleteOldRuns(db, 400),
  deleteOldTunnels: (db) => deleteOldTunnels(db),
  endNotifications: (db) => endNotifications(db),
  nextFetchMs: (db) => nextFetchMs(db),
  pruneMetrics: (db) => pruneMetrics(db, { hoursOfMinutes: 24, hoursOfQuarters: 168, days: 400 }),
  recentOrders: (db) => recentOrders(db, null),
  releaseDeadLeasesOfCronRuns: (db) => releaseDeadLeases(db, "cron_run"),
  releaseDeadLeasesOfFollows: (db) => releaseDeadLeases(db, "project_follow"),
  releaseDeadLeasesOfRuns: (db) => releaseDeadLeases(db, "run"),
  takeDueProject: (db) => takeDueProject(db),
  takeFollow: (db) => takeFollow(db, owner, nothingInProgress),
  takeRun: (db) => takeRun(db, owner, nothingInProgress),
  takeStatus: (db) => takeStatus(db, 60, nothingInProgress),
  wantedDatabases: (db) => wantedDatabases(db),
  changedWorkloads: (db) => changedWorkloads(db, "machine", { since: null }),
  activeDeployments: (db) => activeDeployments(db, [home.id]),
  backupAges: (db) => backupAges(db),
  selectHealthFacts: (db) => selectHealthFacts(db, null),
  selectTraffic: (db) => selectTraffic(db),
  cronLateness: (db) => cronLateness(db),
  lateNotifications: (db) => lateNotifications(db),
  openWork: (db) => openWork(db),
  plannedRenewals: (db) => plannedRenewals(db),
  servingCertificates: (db) => servingCertificates(db),
};

/** The statements already run in a transaction, so a query that opens its own transaction reuses it. */
function savepoints(tx: Db): Db {
  const transaction = () => ({ execute: (work: (tx: Db) => unknown) => work(tx) });
  return new Proxy(tx, { get: (of, name) => (name === "transaction" ? transaction : Reflect.get(of, name, of)) });
}

let database: TestDatabase;
const home = { id: "", org_id: "" };

before(async () => {
  database = await testDatabase();
  const { db, vault } = database;
  const platform = { db, vault } as HandlerPlatform;
  const org = await testOrganization(database.db, "home");
  const project = await testProject(platform, org);
  Object.assign(home, { id: project.id, org_id: org.id });
  const of = { org_id: org.id, project_id: project.id };
  const build_id = await testBuild(platform, of, { status: "succeeded" });
  await testDeployment(platform, of, { build_id, number: 1, status: "active" });
  await makeHistory(database.db);
});
after(() => database?.drop());

for (const [name, query] of Object.entries(queries))
  test(`${name} reads no more rows when ${history} finished rows exist`, async () => {
    const read = await rowsRead(database.db, query);
    assert.ok(read <= most, `it read ${read} rows`);
  });

test("the mark of certificates changes only when the served certificates change, and each key is decrypted once", async () => {
  const { db } = database;
  let opened = 0;
  const vault = { open: (id: string) => `key ${(opened += 1) && id}` } as Pick<Vault, "open"> as Vault;
  const read = createEdgeCertificates({ db, vault });
  const names = async () => (await read([])).flatMap((certificate) => certificate.names);
  const marked = async (change: () => Promise<unknown>) => {
    const before = await certificatesMark(db);
    await change();
    return (await certificatesMark(db)) !== before;
  };
  const update = (id: string, to: string) => () =>
    sql`update certificate set ${sql.raw(to)} where id = ${id}`.execute(db);
  await sql`insert into certificate (id, hostname, challenge) select 'new_' || n, n || '.new.test', 'http-01' from generate_series(1, 2) as t(n)`.execute(
    db,
  );
  const issue = "chain_pem = 'chain', sealed_key = '', not_before = now(), not_after = now() + interval '1 day'";
  assert.equal(await marked(update("new_1", "status = 'issuing', fence = fence + 1, ordered_at = now()")), false);
  assert.equal(await marked(update("new_1", issue)), true);
  assert.equal(await marked(update("new_2", issue)), true);
  assert.deepEqual(await names(), ["1.new.test", "2.new.test"]);
  assert.equal(opened, 2);
  assert.equal(await marked(update("new_2", "chain_pem = 'renewed'")), true);
  assert.deepEqual(await read([]), [
    { names: ["1.new.test"], chain_pem: "chain", key_pem: "key new_1" },
    { names: ["2.new.test"], chain_pem: "renewed", key_pem: "key new_2" },
  ]);
  assert.equal(opened, 3);
  assert.equal(await marked(update("new_1", "wanted = false")), true);
  assert.deepEqual(await names(), ["2.new.test"]);
  // An expiring certificate changes the mark without a change of its row.
  const mark = await certificatesMark(db);
  await sql`update certificate set not_after = clock_timestamp() + interval '200 milliseconds' where id = 'new_2'`.execute(
    db,
  );
  const beforeEnd = await certificatesMark(db);
  assert.notEqual(beforeEnd, mark);
  await eventually(
    async () => (await certificatesMark(db)) !== beforeEnd,
    "the mark changes when the certificate expires",
  );
  assert.deepEqual(await names(), []);
  assert.equal(await marked(() => sql`delete from certificate where id like 'new_%'`.execute(db)), true);
});

/** Copies the build and the deployment as finished rows, and adds finished rows of all other work. It skips triggers and foreign keys to save time. */
async function makeHistory(db: Db): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx);
    const copies = sql`cross join generate_series(2, ${history}) as copy(n)`;
    await sql`insert into build (id, org_id, project_id, number, status, origin, commit, branch, message, finished_at)
      select id || n, org_id, project_id, n, 'succeeded', origin, commit, branch, message, now() - interval '1 day' from build ${copies}`.execute(
      tx,
    );
    await sql`insert into deployment (id, org_id, project_id, number, status, trigger, build_id, commit, image_ref, image, sealed_variables,
        activated_at, retired_at, finished_at)
      select id || n, org_id, project_id, n, 'retired', trigger, build_id, commit, image_ref || n, image, sealed_variables,
        now() - interval '1 day', now() - interval '1 day', now() - interval '1 day' from deployment ${copies}`.execute(
      tx,
    );
    await sql`insert into replica (org_id, project_id, deployment_id, ordinal, attempt, ready_attempt, machine)
      select org_id, project_id, id, 0, 1, 1, 'machine' from deployment where status = 'retired'`.execute(tx);
    await sql`insert into certificate (id, hostname, challenge, wanted, chain_pem, not_after, next_attempt_at)
      select 'crt_' || n, n || '.old.test', 'http-01', n % 2 = 0, 'chain', now() - interval '1 day', now() + interval '1 day'
      from project p ${copies}`.execute(tx);
    await sql`insert into cron_run (id, org_id, project_id, job_id, trigger, scheduled_at, status, started_at, finished_at)
      select 'run_' || n, p.org_id, p.id, 'job_1', 'schedule', now() - make_interval(mins => n), 'succeeded', now(), now() from project p ${copies}`.execute(
      tx,
    );
    await sql`insert into backup_operation (id, org_id, project_id, backup_id, kind, status, finished_at)
      select 'bop_' || n, p.org_id, p.id, 'bak_' || n, 'backup', 'completed', now() from project p ${copies}`.execute(
      tx,
    );
    for (const rows of endedRows) await sql`${sql.raw(rows)} from project p ${copies}`.execute(tx);
  });
  await sql`analyze`.execute(db);
}

/** The beginnings of statements that add finished rows; `p` is the project and `n` the number of the row. */
const endedRows = [
  `insert into run (id, org_id, project_id, number, status, deployment_id, deployment, command, timeout_seconds, requested_by, lease_owner, finished_at)
    select 'run_' || n, p.org_id, p.id, n, 'succeeded', 'dep_1', 1, 'true', 60, 'a', 'dead', now()`,
  `insert into notification (id, org_id, notifier, kind, status, attempts, expires_at, lease_owner, finished_at)
    select 'ntf_' || n, p.org_id, 'outbox', 'alert', 'delivered', 1, now() + interval '1 day', 'dead', now()`,
  `insert into webhook_delivery (org_id, webhook_id, event, data, status, lease_owner, finished_at, id)
    select p.org_id, 'whk_1', 'deployment.live', '{}', 'delivered', 'dead', now(), 'whd_' || n`,
  `insert into approval (id, org_id, token_id, token_name, fingerprint, route, method, path, resource, request, status, link_hash, expires_at, decided_at)
    select 'apr_' || n, p.org_id, 'tok_1', 'a', '', 'projects.delete', 'DELETE', '/', '', '{}', 'consumed', n::text::bytea, now(), now()`,
  `insert into idempotency_key (org_id, token_id, key, request_hash, held_until, committed, expires_at)
    select p.org_id, 'tok_1', n, '', now(), true, now() + interval '1 day'`,
  `insert into follow_delivery (id, org_id, follow_id, source, event, status, signed, finished_at)
    select 'fwd_' || n, p.org_id, 'fol_1', 'hook', 'push', 'deployed', true, now()`,
  `insert into database_tunnel (id, org_id, project_id, token_id, purpose, status, closed_at)
    select 'tun_' || n, p.org_id, p.id, 'tok_1', 'session', 'closed', now()`,
  `insert into alert (id, name, machine, subject, severity, summary, opened_at, resolved_at, notify_at)
    select 'alt_' || n, 'disk', 'machine', n, 'warning', 'a', now(), now(), now()`,
  `insert into activity (id, org_id, project_id, actor_name, action) select 'act_' || n, p.org_id, p.id, 'a', 'deployment.live'`,
  `insert into change (org_id, project_id, noun) select p.org_id, p.id, 'deployment'`,
  `insert into project_metric (project_id, org_id, bucket_seconds, at) select p.id, p.org_id, 3600, now() - make_interval(mins => n)`,
];

/** Counts the rows that a query's statements read through indexes and table scans. */
async function rowsRead(db: Db, query: (db: Db) => Promise<unknown>): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const before = await rowsReadSoFar(tx);
    await query(tx as unknown as Db);
    return (await rowsReadSoFar(tx)) - before;
  });
}

async function rowsReadSoFar(tx: Tx): Promise<number> {
  const { rows } = await sql<{ read: number }>`
    select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8 as read from pg_stat_xact_user_tables`.execute(
    tx,
  );
  return rows[0]?.read ?? 0;
}
