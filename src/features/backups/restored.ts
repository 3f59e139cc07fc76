import { sql } from "kysely";
import type { Db, Tx } from "../../store/database.ts";
import { lockProject } from "../projects/projects.ts";
import type { DatabaseRow } from "../database/database.ts";

/** An additional database of a project, beside the live one. */
export interface RestoredDatabase {
  readonly database: string;
  /** Null for the project's original database, and one that was restored to a moment. */
  readonly backup_id: string | null;
  /** The moment that it shows, if it was restored to one. */
  readonly shows: string | null;
  readonly created_at: string;
}

/** Returns the databases beside the project's live one that can be read or promoted, newest first. */
export async function restoredDatabases(
  db: Db | Tx,
  orgId: string,
  projectId: string,
): Promise<readonly RestoredDatabase[]> {
  return db
    .selectFrom("restored_database as r")
    .innerJoin("project_database as d", "d.project_id", "r.project_id")
    .select(["r.name as database", "r.backup_id", "r.shows", "r.created_at"])
    .where(({ and }) => and({ "r.org_id": orgId, "r.project_id": projectId }))
    .where("r.dropped_at", "is", null)
    .whereRef("r.name", "<>", "d.database_name")
    .orderBy("r.created_at", "desc")
    .execute();
}

/** Returns whether the project has a database of this name, live or additional. Any other name behaves as missing everywhere. */
export async function hasDatabase(
  db: Db | Tx,
  { id, org_id, project_id, database_name }: DatabaseRow,
  name: string,
): Promise<boolean> {
  if (name === database_name) return true;
  // A branch has a server of its own, whose other databases have no rows.
  if (id.startsWith("dbb_")) return false;
  return (await restoredDatabases(db, org_id, project_id)).some(({ database }) => database === name);
}

/** Forgets all databases beside live ones, which are in no backup. Resolves with their number. */
export async function forgetAllRestored(db: Db): Promise<number> {
  const done = await sql`delete from restored_database r using project_database d
    where r.project_id = d.project_id and r.org_id = d.org_id and r.name <> d.database_name`.execute(db);
  return Number(done.numAffectedRows);
}

export async function insertRestored(
  tx: Tx,
  row: { org_id: string; project_id: string; name: string; backup_id: string | null; shows?: string },
): Promise<void> {
  await tx
    .insertInto("restored_database")
    .values(row)
    .onConflict((on) => on.columns(["project_id", "name"]).doNothing())
    .execute();
}

export async function setLiveDatabase(
  tx: Tx,
  { org_id, project_id }: { org_id: string; project_id: string },
  name: string,
): Promise<void> {
  await tx
    .updateTable("project_database")
    .set({ database_name: name })
    .where(({ and }) => and({ org_id, project_id }))
    .execute();
}

/** Locks the project and its database row, so that the live name stays the same for the transaction; returns that name. */
export async function lockLiveName(tx: Tx, orgId: string, projectId: string): Promise<string | undefined> {
  await lockProject(tx, { org_id: orgId, project_id: projectId });
  const row = await tx
    .selectFrom("project_database")
    .select("database_name")
    .where(({ and }) => and({ org_id: orgId, project_id: projectId }))
    .forUpdate()
    .executeTakeFirst();
  return row?.database_name;
}

export async function markDropped(tx: Tx, owner: { org_id: string; project_id: string }, name: string): Promise<void> {
  await tx
    .updateTable("restored_database")
    .set({ dropped_at: sql`now()` })
    .where(({ and }) => and({ org_id: owner.org_id, project_id: owner.project_id, name }))
    .execute();
}

export async function droppedDatabases(db: Db) {
  return db
    .selectFrom("restored_database")
    .select(["org_id", "project_id", "name"])
    .where("dropped_at", "is not", null)
    .execute();
}

export async function forgetRestored(
  db: Db,
  owner: { org_id: string; project_id: string },
  name: string,
): Promise<void> {
  await db
    .deleteFrom("restored_database")
    .where(({ and }) => and({ org_id: owner.org_id, project_id: owner.project_id, name }))
    .where("dropped_at", "is not", null)
    .execute();
}
