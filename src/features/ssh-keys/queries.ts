import type { Db, Tx } from "../../store/database.ts";

const columns = ["id", "name", "public_key", "fingerprint", "created_at"] as const;

/** Every organization's key of this fingerprint, with the organization. */
export async function selectKeysByFingerprint(db: Db | Tx, fingerprint: string) {
  return db
    .selectFrom("ssh_key")
    .innerJoin("organization", "organization.id", "ssh_key.org_id")
    .select([
      "ssh_key.id",
      "ssh_key.name",
      "ssh_key.public_key",
      "organization.id as org_id",
      "organization.slug as org_slug",
      "organization.suspended_at",
    ])
    .where("ssh_key.fingerprint", "=", fingerprint)
    .orderBy("ssh_key.id")
    .execute();
}

export async function listKeys(db: Db | Tx, orgId: string) {
  return db.selectFrom("ssh_key").select(columns).where("org_id", "=", orgId).orderBy("id", "desc").execute();
}

export async function selectKey(db: Db | Tx, orgId: string, id: string) {
  return db.selectFrom("ssh_key").select(columns).where("org_id", "=", orgId).where("id", "=", id).executeTakeFirst();
}

export interface NewKey {
  readonly id: string;
  readonly org_id: string;
  readonly name: string;
  readonly public_key: string;
  readonly fingerprint: string;
  readonly created_by: string;
  readonly created_at: Date;
}

/** The inserted key, or undefined when the organization has it already. */
export async function insertKey(tx: Tx, key: NewKey) {
  return tx
    .insertInto("ssh_key")
    .values(key)
    .onConflict((on) => on.columns(["org_id", "fingerprint"]).doNothing())
    .returning(columns)
    .executeTakeFirst();
}

/** The deleted key's fingerprint, or undefined when there was none. */
export async function deleteKey(tx: Tx, orgId: string, id: string) {
  return tx
    .deleteFrom("ssh_key")
    .where("org_id", "=", orgId)
    .where("id", "=", id)
    .returning(["name", "fingerprint"])
    .executeTakeFirst();
}
