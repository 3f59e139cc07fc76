import { sql } from "kysely";
import type { Db } from "./database.ts";

// A platform that is stopped for two thirds of the time still catches up with the clock.
const speed = 3;
const key = "proven_time";
const stored = sql<string>`(select (value #>> '{}')::timestamptz from platform_fact where key = ${sql.lit(key)})`;

/** Returns `provenNow`, by this clock. */
export async function provenTime({ db, clock }: { readonly db: Db; readonly clock: { now(): Date } }): Promise<Date> {
  const { rows } = await sql<{ at: Date }>`select least(${clock.now()}::timestamptz, ${stored}) as at`.execute(db);
  return new Date(rows[0]?.at ?? clock.now());
}

/**
 * The time with which deadlines of whatever is deleted for good are compared: never later than the clock, and of a jump ahead it follows
 * only three seconds for each second that the primary runs. It is the clock's time until the primary's first start.
 */
export const provenNow = sql<string>`least(now(), ${stored})`;

/** Advances the proven time by what `passedMs` of the primary's running prove; the first call takes the clock's time. */
export async function proveTime(db: Db, { now, passedMs }: { readonly now: Date; readonly passedMs: number }) {
  await sql`insert into platform_fact (key, value) values (${key}, to_jsonb(${now}::timestamptz))
    on conflict (key) do update set updated_at = now(), value = to_jsonb(greatest(${stored},
      least(${now}::timestamptz, ${stored} + make_interval(secs => ${(speed * passedMs) / 1000}))))`.execute(db);
}

// Longer than any pause that these columns are set to; only the pauses of deliveries reach ten hours.
const pauses = [
  ["replica", "next_start_at", 2],
  ["page_look", "next_at", 2],
  ["disk_use", "next_at", 2],
  ["project_follow", "next_fetch_at", 2],
  ["preview_fetch", "next_fetch_at", 2],
  ["commit_status", "next_attempt_at", 2],
  ["domain", "next_check_at", 2],
  ["notification", "next_attempt_at", 2],
  ["webhook_delivery", "next_attempt_at", 11],
] as const;

/** Makes work due that was put off while the clock was ahead: it would wait until that time comes again. */
export async function endLongPauses(db: Db): Promise<void> {
  for (const [table, column, hours] of pauses)
    await sql`update ${sql.table(table)} set ${sql.ref(column)} = now()
      where ${sql.ref(column)} > now() + make_interval(hours => ${hours})`.execute(db);
  // A certificate in use waits for its renewal.
  await sql`update certificate set next_attempt_at = now()
    where next_attempt_at > not_after or (status <> 'active' and next_attempt_at > now() + interval '2 hours')`.execute(
    db,
  );
}
