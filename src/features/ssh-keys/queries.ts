import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { isInUse, reachedProjects } from "../tokens/tokens.ts";

const columns = [
  "ssh_key.id",
  "ssh_key.name",
  "ssh_key.public_key",
  "ssh_key.fingerprint",
  "ssh_key.created_at",
  "ssh_key.created_by",
  "api_token.expires_at",
] as const;

const isActive = sql<boolean>`(api_token.id is not null and api_token.revoked_at is null
  and (api_token.expires_at is null or api_token.expires_at > now()) and ${isInUse})`;

// A key grants the rights of the token that registered it.
const withToken = (db: Db | Tx) =>
  db
    .selectFrom("ssh_key")
    .leftJoin("api_token", (join) =>
      join.onRef("api_token.id", "=", "ssh_key.created_by").onRef("api_token.org_id", "=", "ssh_key.org_id"),
    );

/** Returns every organization's key with this fingerprint whose token is valid, with the organization and the token's scopes. */
export async function selectKeysByFingerprint(db: Db | Tx, fingerprint: string) {
  return withToken(db)
    .innerJoin("organization", "organization.id", "ssh_key.org_id")
    .select([
      "ssh_key.id",
      // What a person's key pushes names both.
      sql<string>`coalesce((select person.name || ' via SSH key ' from person where person.id = api_token.person_id), '') || ssh_key.name`.as(
        "name",
      ),
      "ssh_key.public_key",
      "api_token.scopes",
      reachedProjects,
      "api_token.approval_mode",
      "api_token.id as token_id",
      "organization.id as org_id",
      "organization.slug as org_slug",
      "organization.suspended_at",
    ])
    .where("ssh_key.fingerprint", "=", fingerprint)
    .where(isActive)
    .orderBy("ssh_key.id")
    .execute();
}

export async function listKeys(db: Db | Tx, orgId: string) {
  return shown(db, orgId).orderBy("ssh_key.id", "desc").execute();
}

export async function selectKey(db: Db | Tx, orgId: string, id: string) {
  return shown(db, orgId).where("ssh_key.id", "=", id).executeTakeFirst();
}

const shown = (db: Db | Tx, orgId: string) =>
  withToken(db)
    .select([...columns, isActive.as("active")])
    .where("ssh_key.org_id", "=", orgId);

export interface NewKey extends Columns<
  "ssh_key",
  "id" | "org_id" | "name" | "public_key" | "fingerprint" | "created_by"
> {
  readonly created_at: Date;
}

/** Inserts a key and returns it; undefined when the organization already has it. A key whose token is no longer valid is replaced. */
export async function insertKey(tx: Tx, key: NewKey) {
  await sql`delete from ssh_key using ssh_key k left join api_token on api_token.id = k.created_by and api_token.org_id = k.org_id
    where ssh_key.id = k.id and k.org_id = ${key.org_id} and k.fingerprint = ${key.fingerprint} and not ${isActive}`.execute(
    tx,
  );
  const inserted = await tx
    .insertInto("ssh_key")
    .values(key)
    .onConflict((on) => on.columns(["org_id", "fingerprint"]).doNothing())
    .returning("id")
    .executeTakeFirst();
  return inserted && selectKey(tx, key.org_id, inserted.id);
}

/** Locks the organization, so that concurrent registrations wait, and returns how many keys it has. */
export async function lockKeyCount(tx: Tx, orgId: string): Promise<number> {
  await tx.selectFrom("organization").select("id").where("id", "=", orgId).forNoKeyUpdate().execute();
  const { count } = await tx
    .selectFrom("ssh_key")
    .select(sql<number>`count(*)`.as("count"))
    .where("org_id", "=", orgId)
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns the rights of the token that registered a key; undefined when there is no such key. */
export async function selectRegistrant(tx: Tx, orgId: string, id: string) {
  return withToken(tx)
    .select(["ssh_key.created_by", "api_token.role", "api_token.platform_admin", isActive.as("active")])
    .where(({ and }) => and({ "ssh_key.org_id": orgId, "ssh_key.id": id }))
    .executeTakeFirst();
}

/** Deletes a key; returns its name and fingerprint, or undefined when there was none. */
export async function deleteKey(tx: Tx, orgId: string, id: string) {
  return tx
    .deleteFrom("ssh_key")
    .where(({ and }) => and({ org_id: orgId, id }))
    .returning(["name", "fingerprint"])
    .executeTakeFirst();
}
