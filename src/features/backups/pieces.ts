import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";

/** One line of a list: the SHA-256 of a piece, the storage that has it, and its key there. */
export type Piece = Columns<"storage_piece", "sha256" | "storage" | "storage_key">;

/** Uses a stored piece for one more backup; undefined when it is not stored or about to be deleted. */
export async function reusePiece(
  db: Db,
  { org_id, project_id }: ProjectKey,
  sha256: string,
  backupId: string,
): Promise<Piece | undefined> {
  const { rows } = await sql<Piece>`update storage_piece
    set first_backup = least(first_backup, ${backupId}), last_backup = greatest(last_backup, ${backupId})
    where org_id = ${org_id} and project_id = ${project_id} and sha256 = ${sha256} and bytes is not null and not unused
    returning sha256, storage, storage_key`.execute(db);
  return rows[0];
}

/** Returns where an interrupted attempt or a deletion that has not ended may have left this piece. */
export async function leftPiece(db: Db, { org_id, project_id }: ProjectKey, sha256: string) {
  return db
    .selectFrom("storage_piece")
    .select(["storage", "storage_key"])
    .where(({ and }) => and({ org_id, project_id, sha256 }))
    .executeTakeFirst();
}

/** Records where a piece will be stored, before its first byte is written. */
export async function addPiece(db: Db, { org_id, project_id }: ProjectKey, piece: Piece, backupId: string) {
  const use = { first_backup: backupId, last_backup: backupId };
  await db
    .insertInto("storage_piece")
    .values({ ...piece, ...use, org_id, project_id })
    .onConflict((on) =>
      on
        .columns(["project_id", "sha256"])
        .doUpdateSet({ ...use, storage: piece.storage, storage_key: piece.storage_key, bytes: null, unused: false }),
    )
    .execute();
}

export async function completePiece(
  db: Db,
  { org_id, project_id }: ProjectKey,
  { sha256, storage_key }: Piece,
  bytes: number,
): Promise<void> {
  await db
    .updateTable("storage_piece")
    .set({ bytes })
    .where(({ and }) => and({ org_id, project_id, sha256, storage_key }))
    .execute();
}

export async function isPieceBeingStored(db: Db, storage: string, key: string): Promise<boolean> {
  const row = await db
    .selectFrom("storage_piece as p")
    .innerJoin("backup_operation as o", "o.project_id", "p.project_id")
    .select("p.sha256")
    .where(({ and }) => and({ "p.storage": storage, "p.storage_key": key, "o.status": "running", "o.kind": "backup" }))
    .where("p.bytes", "is", null)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Marks the pieces that no backup contains any more. While the others take more than `limitBytes` of the local disk, it ends the oldest
 * backup that is neither the newest nor the newest verified one. Only the transaction that ends a backup of the project's files may call it:
 * while another one runs, a piece could be reused unseen.
 */
export async function markUnusedPieces(tx: Tx, { org_id, project_id }: ProjectKey, limitBytes: number): Promise<void> {
  for (;;) {
    await sql`update storage_piece t set unused = true where t.org_id = ${org_id} and t.project_id = ${project_id} and not t.unused
      and not exists (select from backup b where b.org_id = t.org_id and b.project_id = t.project_id and b.content = 'files'
        and b.status = 'completed' and b.expired_at is null and b.id between t.first_backup and t.last_backup)`.execute(
      tx,
    );
    const ended =
      await sql`with whole as (select id, verification from backup where org_id = ${org_id} and project_id = ${project_id}
        and content = 'files' and status = 'completed' and expired_at is null)
      update backup set expired_at = now() where id = (select min(id) from whole where id < (select max(id) from whole)
          and id is distinct from (select max(id) from whole where verification = 'verified'))
        and (select coalesce(sum(bytes), 0) from storage_piece where org_id = ${org_id} and project_id = ${project_id}
          and storage = 'disk' and not unused) > ${limitBytes}`.execute(tx);
    if (ended.numAffectedRows === 0n) return;
  }
}

export async function markPurgedPieces(db: Db): Promise<void> {
  await sql`update storage_piece t set unused = true from project p
    where p.id = t.project_id and p.org_id = t.org_id and p.purged_at is not null and not t.unused`.execute(db);
}

export async function unusedPieces(db: Db, project: ProjectKey | undefined, limit: number) {
  let query = db.selectFrom("storage_piece").select(["org_id", "project_id", "sha256", "storage", "storage_key"]);
  if (project !== undefined)
    query = query.where("org_id", "=", project.org_id).where("project_id", "=", project.project_id);
  return query.where("unused", "=", true).limit(limit).execute();
}

/** Forgets a piece whose file is deleted, unless a backup has stored it anew meanwhile. */
export async function forgetPiece(db: Db, { org_id, project_id }: ProjectKey, { sha256, storage_key }: Piece) {
  await db
    .deleteFrom("storage_piece")
    .where(({ and }) => and({ org_id, project_id, sha256, storage_key, unused: true }))
    .execute();
}

export const digestOf = (content: Uint8Array | string) => createHash("sha256").update(content).digest("hex");
