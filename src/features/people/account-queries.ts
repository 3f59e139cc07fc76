import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";

const accounts = (db: Db | Tx) =>
  db.selectFrom("person").select([
    "person.id",
    "person.name",
    "person.email",
    "person.created_at",
    "person.disabled_at",
    sql<boolean>`can_sign_in(person.id)`.as("can_sign_in"),
    sql<string[]>`array(select slug from organization join api_token on org_id = organization.id
        where person_id = person.id and kind = 'member' and revoked_at is null order by slug)`.as("organizations"),
    sql<string | null>`(select max(last_used_at) from session where person_id = person.id)`.as("last_used_at"),
  ]);

export async function listAccounts(db: Db | Tx) {
  return accounts(db).orderBy("person.id").execute();
}

export async function selectAccount(db: Db | Tx, id: string) {
  return accounts(db).where("person.id", "=", id).executeTakeFirst();
}

/** Disables or enables a person; returns false when that is so already. */
export async function setDisabled(tx: Tx, id: string, disabled: boolean): Promise<boolean> {
  const done = await tx
    .updateTable("person")
    .set({ disabled_at: disabled ? sql`now()` : null })
    .where("id", "=", id)
    .where("disabled_at", disabled ? "is" : "is not", null)
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/** Returns a person's memberships, in the order in which organizations are locked. */
export async function membershipsToEnd(tx: Tx, personId: string) {
  return tx
    .selectFrom("api_token")
    .select(["id", "org_id", "role"])
    .where(({ and }) => and({ person_id: personId, kind: "member" }))
    .where("revoked_at", "is", null)
    .orderBy("org_id")
    .execute();
}

/** Deletes the SSH keys that these tokens registered, and revokes the invitations that they sent. */
export async function endKeysAndInvites(tx: Tx, orgId: string, tokenIds: readonly string[]): Promise<void> {
  await tx
    .deleteFrom("ssh_key")
    .where("org_id", "=", orgId)
    .where("created_by", "in", [...tokenIds])
    .execute();
  await tx
    .updateTable("invite")
    .set({ revoked_at: sql`now()` })
    .where("org_id", "=", orgId)
    .where("created_by", "in", [...tokenIds])
    .where("used_at", "is", null)
    .where("revoked_at", "is", null)
    .execute();
}
