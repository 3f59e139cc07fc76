import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";

/** Returns a live session, and the organization and membership that it works in. */
export async function selectSession(db: Db | Tx, by: { readonly hash: Buffer } | { readonly id: string }) {
  return db
    .selectFrom("session")
    .innerJoin("api_token", "api_token.id", "session.token_id")
    .innerJoin("person", "person.id", "session.person_id")
    .select([
      "session.id",
      "session.person_id",
      "session.token_id",
      "session.method",
      "session.created_at",
      "session.fresh_at",
      "person.name",
      "api_token.org_id",
    ])
    .where("session.ended_at", "is", null)
    .where(sql<boolean>`session.expires_at > now()`)
    .where("api_token.revoked_at", "is", null)
    .where(({ eb }) => ("hash" in by ? eb("session.hash", "=", by.hash) : eb("session.id", "=", by.id)))
    .executeTakeFirst();
}

export async function refreshSession(db: Db | Tx, id: string): Promise<void> {
  await db
    .updateTable("session")
    .set({ fresh_at: sql`now()` })
    .where("id", "=", id)
    .where("ended_at", "is", null)
    .execute();
}

/** Locks a person, so that concurrent changes of how they sign in wait. */
export async function lockPerson(tx: Tx, personId: string): Promise<void> {
  await tx.selectFrom("person").select("id").where("id", "=", personId).forNoKeyUpdate().execute();
}

export async function listPasskeys(db: Db | Tx, personId: string) {
  return db
    .selectFrom("passkey")
    .select(["id", "name", "rp_id", "created_at", "last_used_at"])
    .where("person_id", "=", personId)
    .orderBy("created_at")
    .execute();
}

export async function renamePasskey(tx: Tx, personId: string, { id, name }: Columns<"passkey", "id" | "name">) {
  const done = await tx
    .updateTable("passkey")
    .set({ name })
    .where(({ and }) => and({ person_id: personId, id }))
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

export async function deletePasskey(tx: Tx, personId: string, id: string): Promise<void> {
  await tx
    .deleteFrom("passkey")
    .where(({ and }) => and({ person_id: personId, id }))
    .execute();
}

export async function listIdentities(db: Db | Tx, personId: string) {
  return db
    .selectFrom("identity")
    .leftJoin("provider", "provider.issuer", "identity.issuer")
    .select([
      "identity.id",
      "identity.issuer",
      "identity.label",
      "identity.created_at",
      "identity.last_used_at",
      "provider.name as provider",
    ])
    .where("identity.person_id", "=", personId)
    .orderBy("identity.created_at")
    .execute();
}

type IdentityKey = Columns<"identity", "issuer" | "subject">;

export async function selectIdentity(db: Db | Tx, { issuer, subject }: IdentityKey) {
  return db
    .selectFrom("identity")
    .select(["id", "person_id"])
    .where(({ and }) => and({ issuer, subject }))
    .executeTakeFirst();
}

/** Inserts an identity; returns false when it belongs to an account already. */
export async function insertIdentity(
  tx: Tx,
  identity: Columns<"identity", "id" | "person_id" | "issuer" | "subject" | "label">,
): Promise<boolean> {
  const done = await tx
    .insertInto("identity")
    .values(identity)
    .onConflict((on) => on.doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

export async function touchIdentity(db: Db | Tx, id: string, label: string): Promise<void> {
  await db
    .updateTable("identity")
    .set({ label, last_used_at: sql`now()` })
    .where("id", "=", id)
    .execute();
}

export async function deleteIdentity(tx: Tx, personId: string, id: string): Promise<void> {
  await tx
    .deleteFrom("identity")
    .where(({ and }) => and({ person_id: personId, id }))
    .execute();
}

/** Changes a person's name, also where memberships repeat it. */
export async function renamePerson(tx: Tx, id: string, name: string): Promise<void> {
  await tx.updateTable("person").set({ name }).where("id", "=", id).execute();
  await tx
    .updateTable("api_token")
    .set({ name })
    .where(({ and }) => and({ person_id: id, kind: "member" }))
    .execute();
}
