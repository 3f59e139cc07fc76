import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";

const shown = ["id", "kind", "name", "issuer", "client_id", "created_at", "updated_at"] as const;

export async function listProviders(db: Db | Tx) {
  return db.selectFrom("provider").select(shown).orderBy("created_at").execute();
}

export async function selectProvider(db: Db | Tx, id: string) {
  return db
    .selectFrom("provider")
    .select([...shown, "sealed_secret"])
    .where("id", "=", id)
    .executeTakeFirst();
}

/** Lets one transaction at a time add a provider. */
export async function lockProviders(tx: Tx): Promise<void> {
  await sql`lock table provider in share row exclusive mode`.execute(tx);
}

export interface NewProvider extends Columns<"provider", "id" | "name" | "issuer" | "client_id" | "sealed_secret"> {
  readonly kind: "oidc" | "github";
}

/** Inserts a provider, or replaces the one with the same id. */
export async function setProvider(tx: Tx, provider: NewProvider) {
  const { id: _, ...values } = provider;
  return tx
    .insertInto("provider")
    .values(provider)
    .onConflict((on) => on.column("id").doUpdateSet({ ...values, updated_at: sql`now()` }))
    .returning(shown)
    .executeTakeFirstOrThrow();
}

export async function deleteProvider(tx: Tx, id: string): Promise<boolean> {
  const done = await tx.deleteFrom("provider").where("id", "=", id).executeTakeFirst();
  return done.numDeletedRows === 1n;
}
