import { sql } from "kysely";
import type { Columns, Db } from "../../store/database.ts";

export interface DuePageProbe {
  readonly org_id: string;
  readonly project_id: string;
  readonly hostname: string;
}

/** Claims pages that are due, of projects that are served; no other process probes them for about `everySeconds`. */
export async function claimDuePageProbes(
  db: Db,
  options: { readonly everySeconds: number; readonly limit: number },
): Promise<readonly DuePageProbe[]> {
  const { rows } = await sql<DuePageProbe & { serves: boolean }>`
    with due as (
      select project_id from page_look where next_at <= now() order by next_at limit ${options.limit} for update skip locked)
    update page_look l set next_at = now() + make_interval(secs => ${options.everySeconds} * (0.9 + 0.2 * random()))
    from due join project p on p.id = due.project_id join organization o on o.id = p.org_id
    where l.project_id = due.project_id
    returning l.org_id, l.project_id, p.hostname, p.deleted_at is null and p.maintenance_since is null and p.sleep is null and o.suspended_at is null
      and exists (select 1 from deployment d where d.project_id = p.id and d.status = 'active') as serves`.execute(db);
  return rows.filter((row) => row.serves);
}

/** Adds every served project to the schedule, at a random time within the period. */
export async function schedulePageProbes(db: Db, everySeconds: number): Promise<void> {
  await sql`
    insert into page_look (project_id, org_id, next_at)
    select p.id, p.org_id, now() + make_interval(secs => ${everySeconds} * random())
    from project p join deployment d on d.project_id = p.id and d.status = 'active'
    where p.deleted_at is null and not exists (select 1 from page_look l where l.project_id = p.id)
    on conflict do nothing`.execute(db);
}

/** The result of probing a page. `failure` is null after a response with a status below 500. */
export interface PageProbeResult extends Columns<
  "page_look",
  "http_status" | "failure" | "dns_ms" | "connect_ms" | "first_byte_ms" | "total_ms"
> {
  /** Null when the page is served over plain HTTP. */
  readonly tls_ms: number | null;
}

/** Stores a probe result as the newest and adds it to the buckets at `at`. */
export async function addPageProbe(
  db: Db,
  project: Pick<DuePageProbe, "org_id" | "project_id">,
  look: PageProbeResult,
  at: Date,
): Promise<void> {
  const { project_id, org_id } = project;
  const failed = look.failure === null ? 0 : 1;
  const ms = (value: number | null) => (failed === 1 ? 0 : (value ?? 0));
  await sql`
    with newest as (
      update page_look set looked_at = ${at}, http_status = ${look.http_status}, failure = ${look.failure}, dns_ms = ${look.dns_ms},
        connect_ms = ${look.connect_ms}, tls_ms = ${look.tls_ms}, first_byte_ms = ${look.first_byte_ms}, total_ms = ${look.total_ms}
      where project_id = ${project_id} and org_id = ${org_id})
    insert into project_metric as m (project_id, org_id, bucket_seconds, at, looks, failed_looks, dns_looks, dns_ms, connect_ms, tls_looks, tls_ms,
      first_byte_ms, total_ms, slowest_ms)
    select ${project_id}, ${org_id}, w.seconds, date_bin(make_interval(secs => w.seconds), ${at}::timestamptz, 'epoch'::timestamptz), 1, ${failed}::integer,
      ${failed === 0 && look.dns_ms !== null ? 1 : 0}::integer, ${ms(look.dns_ms)}::double precision, ${ms(look.connect_ms)}::double precision,
      ${failed === 0 && look.tls_ms !== null ? 1 : 0}::integer, ${ms(look.tls_ms)}::double precision,
      ${ms(look.first_byte_ms)}::double precision, ${ms(look.total_ms)}::double precision, ${ms(look.total_ms)}::double precision
    from (values (60), (900), (3600)) as w(seconds)
    on conflict (project_id, bucket_seconds, at) do update set looks = m.looks + 1, failed_looks = m.failed_looks + excluded.failed_looks,
      dns_looks = m.dns_looks + excluded.dns_looks, dns_ms = m.dns_ms + excluded.dns_ms, connect_ms = m.connect_ms + excluded.connect_ms,
      tls_looks = m.tls_looks + excluded.tls_looks, tls_ms = m.tls_ms + excluded.tls_ms,
      first_byte_ms = m.first_byte_ms + excluded.first_byte_ms, total_ms = m.total_ms + excluded.total_ms,
      slowest_ms = greatest(m.slowest_ms, excluded.slowest_ms)`.execute(db);
}
