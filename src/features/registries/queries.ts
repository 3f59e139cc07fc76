import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";

const shown = ["host", "username", "created_at", "updated_at"] as const;

export async function listRegistries(db: Db | Tx, orgId: string) {
  return db.selectFrom("registry").select(shown).where("org_id", "=", orgId).orderBy("host").execute();
}

export async function selectSealed(db: Db | Tx, orgId: string) {
  return db
    .selectFrom("registry")
    .select(["host", "username", "sealed_password"])
    .where("org_id", "=", orgId)
    .orderBy("host")
    .execute();
}

export async function selectRegistry(db: Db | Tx, orgId: string, host: string) {
  return db
    .selectFrom("registry")
    .select("host")
    .where(({ and }) => and({ org_id: orgId, host }))
    .executeTakeFirst();
}

export type NewRegistry = Columns<"registry", "org_id" | "host" | "username" | "sealed_password">;

/** Inserts a registry, or replaces user and password of the one with the same host. */
export async function setRegistry(tx: Tx, registry: NewRegistry) {
  const { username, sealed_password } = registry;
  return tx
    .insertInto("registry")
    .values(registry)
    .onConflict((on) =>
      on.columns(["org_id", "host"]).doUpdateSet({ username, sealed_password, updated_at: sql`now()` }),
    )
    .returning(shown)
    .executeTakeFirstOrThrow();
}

export async function deleteRegistry(tx: Tx, orgId: string, host: string): Promise<boolean> {
  const deleted = await tx
    .deleteFrom("registry")
    .where(({ and }) => and({ org_id: orgId, host }))
    .returning("host")
    .executeTakeFirst();
  return deleted !== undefined;
}
