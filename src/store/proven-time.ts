import { sql } from "kysely";
import type { Db } from "./database.ts";

// A platform that is stopped for two thirds of the time still catches up with the clock.
const speed = 3;
const key = "proven_time";
const stored = sql<string>`(select (value #>> '{}')::timestamptz from platform_fact where key = ${sql.lit(key)})`;

/**
 * The time with which deadlines of whatever is deleted for good are compared: never later than the clock, and of a jump ahead it follows
 * only three seconds for each second that the primary runs. It is the clock's time until the primary's first start.
 */
export const provenNow = sql<string>`least(now(), ${stored})`;

/** Returns `provenNow`, by this clock. */
export async function provenTime({ db, clock }: { readonly db: Db; readonly clock: { now(): Date } }): Promise<Date> {
  const { rows } = await sql<{ at: Date }>`select least(${clock.now()}::timestamptz, ${stored}) as at`.execute(db);
  return new Date(rows[0]?.at ?? clock.now());
}

/** Advances the proven time by what `passedMs` of the primary's running prove; the first call takes the clock's time. */
export async function proveTime(db: Db, { now, passedMs }: { readonly now: Date; readonly passedMs: number }) {
  await sql`insert into platform_fact (key, value) values (${key}, to_jsonb(${now}::timestamptz))
    on conflict (key) do update set updated_at = now(), value = to_jsonb(greatest(${stored},
      least(${now}::timestamptz, ${stored} + make_interval(secs => ${(speed * passedMs) / 1000}))))`.execute(db);
}
