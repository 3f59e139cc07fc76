import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { provenNow } from "../../store/proven-time.ts";
import type { ProjectKey } from "../projects/projects.ts";

const shown = [
  ...(["id", "purpose", "format", "database_name as database", "branch", "backup_id", "encrypted", "status"] as const),
  ...(["close_reason", "created_at", "closed_at"] as const),
] as const;

export interface NewTunnel
  extends ProjectKey, Columns<"database_tunnel", "id" | "token_id" | "purpose" | "format" | "database_name"> {
  readonly branch?: string | undefined;
  readonly backup_id?: string;
  readonly encrypted?: boolean;
}

export async function insertTunnel(tx: Tx, row: NewTunnel) {
  return tx.insertInto("database_tunnel").values(row).returning(shown).executeTakeFirstOrThrow();
}

/** Returns how many tunnels of the organization have not ended. */
export async function livingTunnels(tx: Tx, orgId: string): Promise<number> {
  const { count } = await tx
    .selectFrom("database_tunnel")
    .select(sql<number>`count(*)::integer`.as("count"))
    .where("org_id", "=", orgId)
    .where("status", "<>", "closed")
    .where("alive_until", ">", sql<string>`now()`)
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns a tunnel of the project. Only the token with `token_id` may open it. */
export async function selectTunnel(db: Db | Tx, { org_id, project_id }: ProjectKey, id: string) {
  return db
    .selectFrom("database_tunnel")
    .select([...shown, "token_id"])
    .where(({ and }) => and({ org_id, project_id, id }))
    .executeTakeFirst();
}

/** Opens a waiting tunnel, once, and records the role that will be created for it. Returns whether it was opened. */
export async function openTunnel(db: Db, id: string, roleName: string | null): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("database_tunnel")
    .set({ status: "open", opened_at: sql`now()`, role_name: roleName, alive_until: soon })
    .where(({ and }) => and({ id, status: "waiting" }))
    .where("alive_until", ">", sql<string>`now()`)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

const soon = sql<string>`now() + interval '30 seconds'`;

/** Records that the tunnel's control plane still serves it. */
export async function keepTunnelAlive(db: Db, id: string): Promise<void> {
  await db
    .updateTable("database_tunnel")
    .set({ alive_until: soon })
    .where(({ and }) => and({ id, status: "open" }))
    .execute();
}

export async function markTunnelClosed(db: Db | Tx, id: string, reason: string): Promise<void> {
  await db
    .updateTable("database_tunnel")
    .set({ status: "closed", closed_at: sql`now()`, close_reason: reason })
    .where("id", "=", id)
    .where("status", "<>", "closed")
    .execute();
}

/** Returns tunnels that no client opened in time, and those whose control plane is gone. */
export async function deadTunnels(db: Db) {
  return db
    .selectFrom("database_tunnel")
    .select(["id", "org_id", "project_id", "purpose", "status", "role_name", "database_name", "branch"])
    .where("status", "<>", "closed")
    .where("alive_until", "<=", sql<string>`now()`)
    .execute();
}

/** Deletes closed tunnels that were created more than a week ago. */
export async function deleteOldTunnels(db: Db): Promise<void> {
  await db
    .deleteFrom("database_tunnel")
    .where("status", "=", "closed")
    .where("created_at", "<", sql<string>`${provenNow} - interval '7 days'`)
    .execute();
}
