import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "kysely";
import { testProject } from "../../../test/support/fixtures.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { deleteOldAlerts } from "../../features/alerts/queries.ts";
import { syncWanted } from "../../features/certificates/queries.ts";
import { deleteOldTunnels } from "../../features/database/tunnel-queries.ts";
import { deleteOldFollowDeliveries } from "../../features/follow/queries.ts";
import { pruneMetrics } from "../../features/metrics/sampling.ts";
import { endNotifications } from "../../features/notifications/queries.ts";
import { deleteOldDeliveries } from "../../features/webhooks/webhooks.ts";
import { provenTime } from "../../store/proven-time.ts";
import { approvalsTask } from "../approvals/approvals-task.ts";
import { applyFinalRetention, applyRetention } from "../backups/backup-upkeep.ts";
import { purgesTask } from "../purges/purges-task.ts";
import { retentionTask } from "../retention/retention-task.ts";
import { provenTimeTask } from "./proven-time-task.ts";

const api = await sharedApi();
const { db } = api.database;
const yearMs = 365 * 86_400_000;

/**
 * Statements that add rows from before the jump, which is a year: the database's clock cannot be set, so the rows are a year older than it,
 * and the proven time is theirs. `p` is the project. With what must be true of each table as long as the jump is not proven.
 */
const made: readonly (readonly [insert: string, stays: string])[] = [
  [
    `activity (id, org_id, actor_name, action, created_at) select 'act_1', p.org_id, 'a', 'deployment.live', then`,
    "exists (select from activity where id = 'act_1')",
  ],
  [
    `build (id, org_id, project_id, number, origin, commit, branch, message, status, created_at, finished_at)
      select 'bld_' || n, p.org_id, p.id, n, 'push', 'c', 'main', 'm', 'failed', then, then`,
    "exists (select from build where id = 'bld_1')",
  ],
  [
    `deployment (id, org_id, project_id, build_id, number, trigger, commit, image_ref, image, status, sealed_variables, created_at)
      select 'dep_' || n, p.org_id, p.id, 'bld_2', n, 'push', 'c', 'i', '{}', 'failed', '', then`,
    "exists (select from deployment where id = 'dep_1')",
  ],
  [
    `run (id, org_id, project_id, number, status, deployment_id, deployment, command, timeout_seconds, requested_by, created_at, finished_at)
      select 'run_1', p.org_id, p.id, 1, 'succeeded', 'dep_1', 1, 'true', 60, 'a', then, then`,
    "exists (select from run)",
  ],
  [
    `earlier_name (org_id, project_id, slug, hostname, expires_at) select p.org_id, p.id, 'old', 'old.test', then + interval '1 day'`,
    "exists (select from earlier_name)",
  ],
  [
    `project_metric (project_id, org_id, bucket_seconds, at) select p.id, p.org_id, 3600, then`,
    "exists (select from project_metric)",
  ],
  [
    `alert (id, name, machine, subject, severity, summary, opened_at, resolved_at, notify_at)
      select 'alt_1', 'disk', 'm', 's', 'warning', 'a', then, then, then`,
    "exists (select from alert)",
  ],
  [
    `webhook_delivery (id, org_id, webhook_id, event, data, status, created_at, finished_at)
      select 'whd_1', p.org_id, 'whk_1', 'deployment.live', '{}', 'delivered', then, then`,
    "exists (select from webhook_delivery)",
  ],
  [
    `follow_delivery (id, org_id, follow_id, source, event, status, signed, received_at, finished_at)
      select 'fwd_1', p.org_id, 'fol_1', 'hook', 'push', 'deployed', true, then, then`,
    "exists (select from follow_delivery)",
  ],
  [
    `database_tunnel (id, org_id, project_id, token_id, purpose, status, created_at, closed_at)
      select 'tun_1', p.org_id, p.id, 'tok_1', 'session', 'closed', then, then`,
    "exists (select from database_tunnel)",
  ],
  [
    `notification (id, org_id, notifier, kind, status, sealed_message, attempts, expires_at)
      select 'ntf_1', p.org_id, 'outbox', 'alert', 'queued', 'x', 0, then + interval '1 day'`,
    "exists (select from notification where sealed_message is not null)",
  ],
  [
    `approval (id, org_id, token_id, token_name, fingerprint, route, method, path, resource, request, status, link_hash, created_at, expires_at)
      select 'apr_1', p.org_id, 'tok_1', 'a', '', 'projects.delete', 'DELETE', '/', '', '{}', 'pending', '', then, then + interval '1 day'`,
    "exists (select from approval where status = 'pending')",
  ],
  [
    `idempotency_key (org_id, token_id, key, request_hash, held_until, committed, expires_at)
      select p.org_id, 'tok_1', 'k', '', then, true, then + interval '1 day'`,
    "exists (select from idempotency_key)",
  ],
  [
    `certificate (id, hostname, zone, challenge, wanted, next_attempt_at, not_after)
      select 'crt_1', 'old.test', 'test', 'http-01', false, then, then + interval '30 days'`,
    "exists (select from certificate)",
  ],
  [
    `backup (id, org_id, project_id, origin, status, created_at) select 'bak_1', p.org_id, p.id, 'manual', 'failed', then`,
    "exists (select from backup where id = 'bak_1' and expired_at is null)",
  ],
  [
    `backup (id, org_id, project_id, origin, status, created_at) select 'bak_2', p.org_id, (select id from project where purged_at is not null), 'final', 'completed', then`,
    "exists (select from backup where id = 'bak_2' and expired_at is null)",
  ],
];

test("nothing is deleted for good by a jump of the clock, only by time in which the platform ran", async () => {
  const org = await testOrganization(db, "acme");
  const project = () => testProject(api.platform, org);
  const [living, deleted, purged] = [await project(), await project(), await project()];
  const { rows: times } = await sql<{ then: Date }>`select now() - interval '1 year' as then`.execute(db);
  const then = new Date(times[0]?.then ?? NaN);
  await db.updateTable("project").set({ deleted_at: then, purged_at: then }).where("id", "=", purged.id).execute();
  await db.transaction().execute(async (tx) => {
    // The rows' owners do not matter here.
    await sql`set local session_replication_role = replica`.execute(tx);
    for (const [insert] of made)
      await sql`insert into ${sql.raw(insert.replaceAll("then", `'${then.toISOString()}'::timestamptz`))}
        from project p cross join (values (1), (2)) as v (n) where p.id = ${living.id} and (n = 1 or ${insert.includes("|| n")})`.execute(
        tx,
      );
  });
  await db.updateTable("project").set({ deleted_at: then }).where("id", "=", deleted.id).execute();
  const base = platformBeside(api);
  const settings = { ...base.settings, purgeDays: 30, history: { days: 90, perProject: 1 } };
  const platform = { ...base, settings };
  const clean = async () => {
    const { signal } = new AbortController();
    await retentionTask(platform).run(signal);
    await approvalsTask(platform).run(signal);
    const purges = purgesTask(platform, () => {});
    await purges.run(signal);
    await purges.settle?.();
    await applyRetention(platform, signal);
    await applyFinalRetention(platform);
    await pruneMetrics(db, { hoursOfMinutes: 1, hoursOfQuarters: 1, days: 30 });
    await endNotifications(db);
    await deleteOldDeliveries(db);
    await deleteOldFollowDeliveries(db);
    await deleteOldTunnels(db);
    await db.transaction().execute((tx) => deleteOldAlerts(tx));
    await syncWanted(db, []);
  };
  const lost = async () => {
    const gone: string[] = [];
    for (const [insert, stays] of made) {
      const { rows } = await sql<{ stays: boolean }>`select ${sql.raw(stays)} as stays`.execute(db);
      if (rows[0]?.stays !== true) gone.push(insert.split(" ", 1)[0] ?? "");
    }
    const purge = await db.selectFrom("project_purge").select("id").where("project_id", "=", deleted.id).execute();
    return [...gone, ...(purge.length > 0 ? ["project"] : [])];
  };

  let clockMs = then.getTime();
  let uptimeMs = 0;
  const prove = (task: ReturnType<typeof provenTimeTask>) => task.run(new AbortController().signal);
  const start = () => provenTimeTask({ ...platform, clock: { now: () => new Date(clockMs) } }, () => uptimeMs);
  const before = start();
  await prove(before);
  // The clock jumps; the platform runs on, and is started again.
  clockMs += yearMs;
  uptimeMs += 60_000;
  await prove(before);
  const after = start();
  await prove(after);
  await clean();
  assert.deepEqual(await lost(), []);
  // The clock is right again for an hour, and that hour counts.
  clockMs = then.getTime() + 3_600_000;
  uptimeMs += 3_600_000;
  await prove(after);
  assert.equal((await provenTime(platform)).getTime(), clockMs);
  await clean();
  assert.deepEqual(await lost(), []);
  // A clock that stays ahead is believed after a third of the time that it jumped.
  clockMs = then.getTime() + yearMs;
  uptimeMs += yearMs / 3;
  await prove(after);
  await clean();
  const tables = made.map(([insert]) => insert.split(" ", 1)[0]);
  assert.deepEqual(await lost(), [...tables, "project"]);
});

/** Work that waits, of each kind; `later` is the time that it was put off to while the clock was ahead. */
const waiting: readonly string[] = [
  `replica (org_id, project_id, deployment_id, ordinal, attempt, machine, next_start_at) select p.org_id, p.id, 'dep_x', 0, 1, 'm', later`,
  `page_look (project_id, org_id, next_at) select p.id, p.org_id, later`,
  `disk_use (project_id, org_id, next_at) select p.id, p.org_id, later`,
  `project_follow (id, org_id, project_id, url, branch, provider, sealed_secret, next_fetch_at)
    select 'fol_x', p.org_id, p.id, 'https://git.test/a.git', 'main', 'other', '', later`,
  `preview_fetch (id, org_id, follow_id, branch, next_fetch_at) select 'fpv_x', p.org_id, 'fol_x', 'fix', later`,
  `commit_status (build_id, follow_id, next_attempt_at) select 'bld_x', 'fol_x', later`,
  `domain (id, org_id, project_id, hostname, zone, dns_detail, next_check_at) select 'dom_x', p.org_id, p.id, 'x.test', 'test', '', later`,
  `notification (id, org_id, notifier, kind, status, sealed_message, attempts, expires_at, next_attempt_at)
    select 'ntf_x', p.org_id, 'outbox', 'alert', 'queued', 'x', 0, later, later`,
  `certificate (id, hostname, zone, challenge, wanted, status, not_after, next_attempt_at)
    select 'crt_x', 'x.test', 'test', 'http-01', true, 'pending', null::timestamptz, later
    union all select 'crt_y', 'y.test', 'test', 'http-01', true, 'active', now() + interval '60 days', later`,
  `webhook_delivery (id, org_id, webhook_id, event, data, status, next_attempt_at)
    select 'whd_x', p.org_id, 'whk_1', 'deployment.live', '{}', 'queued', later`,
];

test("nothing waits for a time that the clock was set back from", async () => {
  const { id } = await testProject(api.platform, await testOrganization(db, "back"));
  await db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx);
    for (const insert of waiting)
      await sql`insert into ${sql.raw(insert.replaceAll("later", "now() + interval '1 year'"))} from project p where p.id = ${id}`.execute(
        tx,
      );
  });
  const due = async () => {
    const found: boolean[] = [];
    for (const insert of waiting) {
      const [table = "", columns = ""] = insert.split(/\s\(|\)\s/);
      const column = columns.split(", ").at(-1) ?? "";
      const { rows } = await sql<{ due: boolean }>`
        select bool_and(${sql.ref(column)} <= now()) as due from ${sql.table(table)} where ${sql.ref(column)} is not null`.execute(
        db,
      );
      found.push(rows[0]?.due === true);
    }
    return found;
  };
  let clockMs = Date.now() + yearMs;
  const task = provenTimeTask({ ...platformBeside(api), clock: { now: () => new Date(clockMs) } });
  const run = () => task.run(new AbortController().signal);
  // The first round of a process does not know where the clock was.
  await run();
  assert.deepEqual(
    await due(),
    waiting.map(() => true),
  );
  await sql`update replica set next_start_at = now() + interval '1 year'`.execute(db);
  await run();
  assert.equal((await due())[0], false);
  clockMs -= yearMs;
  await run();
  assert.deepEqual(
    await due(),
    waiting.map(() => true),
  );
});
