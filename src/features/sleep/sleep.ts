import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { awaitOutcome } from "../await-outcome.ts";
import { awaitEdges } from "../routes/routes.ts";

/**
 * Puts those projects to sleep that ask for it and got no request for as long as they say; returns their ids. Background processes, cron
 * jobs, deployments and commands in progress, open tunnels to its database and open requests to `busy` targets (`host:port`) keep a project
 * awake.
 */
export async function fallAsleep(db: Db, busy: readonly string[]): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    update project p set sleep = 'asleep', sleep_at = now() from deployment d
    where p.sleep_after_minutes is not null and p.sleep is null and p.deleted_at is null and p.maintenance_since is null
      and d.project_id = p.id and d.status = 'active'
      and greatest(d.activated_at, p.sleep_at) < now() - make_interval(mins => p.sleep_after_minutes)
      and not exists (select from deployment n where n.project_id = p.id and n.status in ('pending', 'starting'))
      and not exists (select from build b where b.project_id = p.id and b.status in ('queued', 'running'))
      and not exists (select from cron_job c where c.project_id = p.id and c.enabled)
      and not exists (select from deployment_process t where t.deployment_id = d.id and t.process <> 'web' and t.replicas > 0)
      and not exists (select from run where run.project_id = p.id and run.status in ('queued', 'running'))
      and not exists (select from database_tunnel t left join database_branch b on b.project_id = t.project_id and b.name = t.branch
        where coalesce(b.used_by, t.project_id) = p.id and t.status <> 'closed' and t.alive_until > now())
      and not exists (select from replica r where r.deployment_id = d.id and r.host || ':' || r.port = any(${busy}::text[]))
      and not exists (select from project_metric m where m.project_id = p.id and m.requests > 0
        and m.bucket_seconds = case when p.sleep_after_minutes <= 60 then 15 else 900 end
        and m.at + make_interval(secs => m.bucket_seconds) > now() - make_interval(mins => p.sleep_after_minutes))
    returning p.id`.execute(db);
  return rows.map(({ id }) => id);
}

/** Projects that have had time to start are as all others again, whether they did or not; so are those that no longer ask for sleep. */
export async function endSleep(db: Db): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    update project set sleep = null where sleep is not null
      and (sleep_after_minutes is null or sleep = 'waking' and sleep_at < now() - interval '1 minute') returning id`.execute(
    db,
  );
  return rows.map(({ id }) => id);
}

interface Waking {
  readonly db: Db;
  readonly wakeups: Wakeups;
}

/** What a project's sleep decides on: its processes, its routes, and the data of a preview. */
const decided = ["apps", "edge", "databases", "branches"] as const;

export async function announceSleep({ db, wakeups }: Waking, id: string): Promise<void> {
  for (const topic of decided) await wakeups.send(db, topic, id);
}

/** Lets a project that is asleep start. */
export async function beginWaking({ db, wakeups }: Waking, id: string): Promise<void> {
  await db
    .updateTable("project")
    .set({ sleep: "waking", sleep_at: sql`now()` })
    .where(({ and }) => and({ id, sleep: "asleep" }))
    .execute();
  await announceSleep({ db, wakeups }, id);
}

/** Returns whether the project is asleep, which it stays until the transaction ends. */
export async function lockSleeping(tx: Tx, id: string): Promise<boolean> {
  const asleep = tx
    .selectFrom("project")
    .select("id")
    .where(({ and }) => and({ id, sleep: "asleep" }));
  return (await asleep.forNoKeyUpdate().executeTakeFirst()) !== undefined;
}

/** Starts a project that is asleep. Resolves once all edges lead to it; rejects when the signal aborts. */
export async function wakeProject({ db, wakeups }: Waking, id: string, signal: AbortSignal): Promise<void> {
  await beginWaking({ db, wakeups }, id);
  await awaitOutcome(wakeups, { id, signal, pollEveryMs: lookMs }, async () => {
    const { rows } = await sql`
      select from project p left join deployment d on d.project_id = p.id and d.status = 'active'
      where p.id = ${id} and (p.sleep is null or exists (select from replica r
        where r.deployment_id = d.id and r.process = 'web' and r.state = 'running' and r.ready_attempt = r.attempt))`.execute(
      db,
    );
    return rows.length > 0 || undefined;
  });
  await awaitEdges({ db, wakeups }, { timeoutMs: confirmMs, signal });
}

const lookMs = 50;
const confirmMs = 5000;
