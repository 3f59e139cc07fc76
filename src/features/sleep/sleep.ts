import { sql } from "kysely";
import type { Db } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { awaitOutcome } from "../await-outcome.ts";
import { awaitEdges } from "../routes/routes.ts";

/**
 * Puts those projects to sleep that ask for it and got no request for as long as they say; returns their ids. Background processes, cron
 * jobs, deployments in progress and open requests to `busy` targets (`host:port`) keep a project awake.
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

/** Starts a project that is asleep. Resolves once all edges lead to it; rejects when the signal aborts. */
export async function wakeProject(
  { db, wakeups }: { readonly db: Db; readonly wakeups: Wakeups },
  id: string,
  signal: AbortSignal,
): Promise<void> {
  await db
    .updateTable("project")
    .set({ sleep: "waking", sleep_at: sql`now()` })
    .where(({ and }) => and({ id, sleep: "asleep" }))
    .execute();
  await wakeups.send(db, "apps", id);
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
