import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";

const at = (time: Date) => sql<string>`${time}`;

export type KeyOwner = Columns<"idempotency_key", "org_id" | "token_id" | "key">;

export interface NewKey extends KeyOwner {
  readonly request_hash: Buffer;
  readonly held_until: Date;
  readonly expires_at: Date;
}

/** Claims a key that is new, has expired, or whose request left no trace. Returns undefined otherwise; `selectKey` tells why. */
export async function takeKey(db: Db, wanted: NewKey, now: Date): Promise<number | undefined> {
  const { request_hash, held_until, expires_at } = wanted;
  const fresh = { request_hash, held_until, expires_at, committed: false, status_code: null, sealed_answer: null };
  const taken = await db
    .insertInto("idempotency_key")
    .values(wanted)
    .onConflict((on) =>
      on
        .columns(["token_id", "key"])
        .doUpdateSet({ ...fresh, attempt: sql`idempotency_key.attempt + 1` })
        .where((where) =>
          where.or([
            where("idempotency_key.expires_at", "<=", at(now)),
            where.and([
              where("idempotency_key.request_hash", "=", request_hash),
              where("idempotency_key.committed", "=", false),
              where("idempotency_key.held_until", "<=", at(now)),
            ]),
          ]),
        ),
    )
    .returning("attempt")
    .executeTakeFirst();
  return taken?.attempt;
}

export async function selectKey(db: Db, owner: KeyOwner) {
  return db
    .selectFrom("idempotency_key")
    .select(["request_hash", "status_code", "sealed_answer"])
    .where(({ and }) => and({ org_id: owner.org_id, token_id: owner.token_id, key: owner.key }))
    .executeTakeFirst();
}

export interface Hold extends KeyOwner {
  readonly attempt: number;
}

const held = (db: Db | Tx, hold: Hold) =>
  db
    .updateTable("idempotency_key")
    .where(({ and }) => and({ org_id: hold.org_id, token_id: hold.token_id, key: hold.key }))
    .where("attempt", "=", hold.attempt);

/** Records that the change was made, with its response if known. Returns false when another request holds the key by now. */
export async function writeOutcome(
  db: Db | Tx,
  hold: Hold,
  answer: { readonly status_code: number; readonly sealed_answer: Buffer | null } | undefined,
): Promise<boolean> {
  const done = await held(db, hold)
    .set({ committed: true, ...answer })
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

export async function releaseKey(db: Db, hold: Hold): Promise<void> {
  await db
    .deleteFrom("idempotency_key")
    .where("org_id", "=", hold.org_id)
    .where("token_id", "=", hold.token_id)
    .where("key", "=", hold.key)
    .where("attempt", "=", hold.attempt)
    .where("committed", "=", false)
    .execute();
}

export async function deleteEndedKeys(db: Db, now: Date): Promise<number> {
  const done = await db.deleteFrom("idempotency_key").where("expires_at", "<=", at(now)).executeTakeFirst();
  return Number(done.numDeletedRows);
}

/** Removes the oldest responses of each organization with more than `mostBytes`. Reads rows only of a table that is larger. */
export async function dropOldAnswers(db: Db, mostBytes: number): Promise<number> {
  const dropped = await sql`
    update idempotency_key set sealed_answer = null
    from (
      select token_id, key, sum(octet_length(sealed_answer)) over (partition by org_id order by expires_at desc, key) as with_newer
      from idempotency_key
      where sealed_answer is not null and pg_total_relation_size('idempotency_key') > ${mostBytes}
    ) as kept
    where idempotency_key.token_id = kept.token_id and idempotency_key.key = kept.key and kept.with_newer > ${mostBytes}`.execute(
    db,
  );
  return Number(dropped.numAffectedRows ?? 0);
}
