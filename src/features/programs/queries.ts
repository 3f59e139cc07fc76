import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { isInUse } from "../tokens/tokens.ts";
import type { Client } from "./rules.ts";

/** Locks the table of clients, so that concurrent registrations wait, and returns how many this address made in the last hour. */
export async function lockRegistrations(tx: Tx, address: string): Promise<number> {
  await sql`lock table oauth_client in share row exclusive mode`.execute(tx);
  const { rows } = await sql<{ count: number }>`select count(*)::integer as count from oauth_client
    where address = ${address} and created_at > now() - interval '1 hour'`.execute(tx);
  return rows[0]?.count ?? 0;
}

/** Inserts a client, and deletes those without consent for a day and more than `most`, first those that never had any. */
export async function insertClient(tx: Tx, client: Client & { readonly address: string }, most: number): Promise<void> {
  await sql`delete from oauth_client where (last_used_at is null and created_at < now() - interval '1 day')
    or id in (select id from oauth_client order by last_used_at is null, coalesce(last_used_at, created_at) desc offset ${most - 1})`.execute(
    tx,
  );
  await tx
    .insertInto("oauth_client")
    .values({ ...client, redirect_uris: [...client.redirect_uris] })
    .execute();
}

export async function selectClient(db: Db | Tx, id: string): Promise<Client | undefined> {
  // Anybody may send any text here, also one that the database does not take.
  if (!/^client_[\w-]+$/.test(id)) return undefined;
  return db.selectFrom("oauth_client").select(["id", "name", "redirect_uris"]).where("id", "=", id).executeTakeFirst();
}

export async function touchClient(tx: Tx, id: string): Promise<void> {
  await tx
    .updateTable("oauth_client")
    .set({ last_used_at: sql`now()` })
    .where("id", "=", id)
    .execute();
}

type Grant = Columns<
  "oauth_grant",
  "hash" | "client_id" | "redirect_uri" | "challenge" | "user_code_hash" | "device" | "token_id"
> &
  Partial<Columns<"oauth_grant", "address">>;

export interface NewGrant extends Grant {
  readonly token_expires_at: Date | null;
  readonly expires_at: Date;
}

/** Inserts a grant; forgets those that ended more than a day ago. */
export async function insertGrant(db: Db | Tx, grant: NewGrant): Promise<void> {
  await sql`delete from oauth_grant where expires_at < now() - interval '1 day'`.execute(db);
  await db.insertInto("oauth_grant").values(grant).execute();
}

/**
 * Makes room for one more program that waits for a person to type its code: beyond `most`, the codes of the address with the most of them
 * expire, the oldest first, unless a person has typed them. Returns whether there is room.
 */
export async function makeRoomForDevice(db: Db, most: number): Promise<boolean> {
  const { rows } = await sql<{ count: number }>`select count(*)::integer as count from oauth_grant
    where user_code_hash is not null and expires_at > now()`.execute(db);
  const tooMany = (rows[0]?.count ?? 0) - most + 1;
  if (tooMany <= 0) return true;
  const done = await sql`update oauth_grant set expires_at = now() where hash in (
    select hash from oauth_grant where user_code_hash is not null and expires_at > now() and opened_by is null
    order by count(*) over (partition by address) desc, expires_at limit ${tooMany})`.execute(db);
  return done.numAffectedRows !== undefined && done.numAffectedRows > 0n;
}

/** Counts a code that an address typed; false if it has typed `most` within a minute, at all control planes together. */
export async function countTyped(tx: Tx, address: string, most: number): Promise<boolean> {
  await sql`select pg_advisory_xact_lock(hashtext(${`codes of ${address}`}))`.execute(tx);
  await sql`delete from used_challenge where expires_at < now()`.execute(tx);
  // Each attempt uses one of the address's places for a minute.
  const done = await sql`insert into used_challenge (hash, expires_at)
    select hash, now() + interval '1 minute' from (select sha256(convert_to(${`code of ${address} `} || n, 'UTF8')) as hash
      from generate_series(1, ${most}) n) place
    where not exists (select from used_challenge u where u.hash = place.hash) limit 1`.execute(tx);
  return done.numAffectedRows === 1n;
}

const columns = [
  ...(["hash", "client_id", "redirect_uri", "challenge", "device", "opened_by"] as const),
  ...(["token_id", "token_expires_at", "denied_at", "used_at"] as const),
  sql<boolean>`expires_at > now()`.as("is_open"),
  sql<number | null>`extract(epoch from now() - polled_at)::float * 1000`.as("polled_ms_ago"),
] as const;

/** Returns a grant, locked until the transaction ends. */
export async function lockGrant(tx: Tx, by: { readonly hash: Buffer } | { readonly user_code_hash: Buffer }) {
  return tx
    .selectFrom("oauth_grant")
    .select(columns)
    .where(({ eb }) => ("hash" in by ? eb("hash", "=", by.hash) : eb("user_code_hash", "=", by.user_code_hash)))
    .forUpdate()
    .executeTakeFirst();
}

type Change = Partial<Columns<"oauth_grant", "opened_by" | "token_id">> & {
  readonly token_expires_at?: Date | null;
  readonly denied_at?: Date;
  readonly used_at?: Date;
  readonly polled_at?: Date;
};

export async function updateGrant(tx: Tx, hash: Buffer, change: Change): Promise<void> {
  await tx.updateTable("oauth_grant").set(change).where("hash", "=", hash).execute();
}

/** Locks the organization, so that concurrent consents wait, and returns how many programs are connected to it. */
export async function lockPrograms(tx: Tx, orgId: string): Promise<number> {
  await tx.selectFrom("organization").select("id").where("id", "=", orgId).forNoKeyUpdate().execute();
  const { rows } = await sql<{ count: number }>`select count(*)::integer as count from api_token
    where org_id = ${orgId} and kind in ('cli', 'mcp') and revoked_at is null and expires_at > now() and ${isInUse}`.execute(
    tx,
  );
  return rows[0]?.count ?? 0;
}

/** Gives a token that a consent made its text; returns false when it was revoked or has expired meanwhile. */
export async function giveText(tx: Tx, id: string, token: { hash: Buffer; prefix: string; expires_at: string | null }) {
  const done = await tx
    .updateTable("api_token")
    .set(token)
    .where("id", "=", id)
    .where("revoked_at", "is", null)
    .where(sql<boolean>`expires_at > now()`)
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

export async function revoke(tx: Tx, id: string): Promise<void> {
  await tx
    .updateTable("api_token")
    .set({ revoked_at: sql`now()` })
    .where("id", "=", id)
    .execute();
}

const program = (db: Db | Tx) =>
  db
    .selectFrom("api_token")
    .select(["id", "org_id", "name", "kind", "role", "platform_admin"])
    .select(
      sql<string>`coalesce((select person.name || ' via ' from person where person.id = person_id), '') || name`.as(
        "actor_name",
      ),
    )
    .where("kind", "in", ["cli", "mcp"])
    .where("revoked_at", "is", null);

export async function selectProgram(db: Db | Tx, by: { readonly id: string } | { readonly hash: Buffer }) {
  return program(db)
    .where(({ eb }) => ("id" in by ? eb("id", "=", by.id) : eb("hash", "=", by.hash)))
    .executeTakeFirst();
}

/** Returns the slugs of the caller's projects, for a choice; previews belong to their projects. */
export async function listSlugs(
  db: Db,
  caller: { org_id: string; project_ids: readonly string[] | null },
  most: number,
) {
  const rows = await db
    .selectFrom("project")
    .select("slug")
    .where("org_id", "=", caller.org_id)
    .where("deleted_at", "is", null)
    .where("purged_at", "is", null)
    .where("preview_of", "is", null)
    .$if(caller.project_ids !== null, (query) => query.where("id", "in", [...(caller.project_ids ?? []), ""]))
    .orderBy("slug")
    .limit(most)
    .execute();
  return rows.map(({ slug }) => slug);
}
