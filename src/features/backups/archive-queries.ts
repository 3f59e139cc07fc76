import { sql } from "kysely";
import { newId } from "../../kit/ids.ts";
import { segmentName, type CopySummary, type LogPosition } from "../../ports/postgres-host.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";

const chains = (db: Db | Tx) =>
  db
    .selectFrom("archive_chain")
    .select(["id", "org_id", "project_id", "database_id", "log_system", "timeline", "segment_bytes", "storage"])
    .select(["first_position", "stored_position", "stored_until", "created_at", "ended_at", "end_reason"]);

/** Stored log of one database without a gap. */
export type ArchiveChain = Awaited<ReturnType<typeof openChains>>[number];

export function openChains(db: Db) {
  return chains(db).where("ended_at", "is", null).where("expired_at", "is", null).execute();
}

/** Returns all chains of a project's databases, oldest first. */
export function chainsOf(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  return chains(db)
    .where(({ and }) => and({ org_id, project_id }))
    .where("expired_at", "is", null)
    .orderBy("created_at")
    .execute();
}

/** Begins a chain where the instance's log is kept from. */
export async function beginChain(
  db: Db,
  owner: ProjectKey & { readonly database_id: string; readonly storage: string },
  log: LogPosition,
): Promise<ArchiveChain> {
  const first = log.kept_from - (log.kept_from % log.segment_bytes);
  return db
    .insertInto("archive_chain")
    .values({
      id: newId("arc"),
      ...owner,
      ...{ log_system: log.system, timeline: log.timeline, segment_bytes: log.segment_bytes },
      ...{ first_position: first, stored_position: first },
    })
    .returning(["id", "org_id", "project_id", "database_id", "log_system", "timeline", "segment_bytes", "storage"])
    .returning(["first_position", "stored_position", "stored_until", "created_at", "ended_at", "end_reason"])
    .executeTakeFirstOrThrow();
}

/** Records how far the log is stored, and counts the bytes that were stored for good. Throws when the chain has ended. */
export async function advanceChain(
  db: Db,
  { id }: Pick<ArchiveChain, "id">,
  stored: { readonly position: number; readonly until: Date | null; readonly bytes: number },
): Promise<void> {
  const { position, until, bytes } = stored;
  const done = await db
    .updateTable("archive_chain")
    .set({ stored_position: position, ...(until === null ? {} : { stored_until: until.toISOString() }) })
    .where("id", "=", id)
    .where("ended_at", "is", null)
    .executeTakeFirst();
  if (done.numUpdatedRows !== 1n) throw new Error("the chain of the archive has ended");
  if (bytes > 0)
    await sql`update archive_copy set log_bytes = log_bytes + ${bytes} where id = (select id from archive_copy
      where chain_id = ${id} and status = 'completed' order by restorable_from desc limit 1)`.execute(db);
}

const spacing = { bytes: 16 * 1024 ** 2, ms: 10_000 };

/** Records how far a chain's log goes at a moment, unless that is known of one shortly before, with little log in between. */
export async function markChain(db: Db, { id }: Pick<ArchiveChain, "id">, position: number, at: Date): Promise<void> {
  await sql`insert into archive_mark (chain_id, position, at) select ${id}, ${position}, ${at.toISOString()}
    where not exists (select from archive_mark where chain_id = ${id} and position > ${position - spacing.bytes}
      and at > ${new Date(at.getTime() - spacing.ms).toISOString()}) on conflict do nothing`.execute(db);
}

/** A transaction has its time before it is in the log, by less than this. */
const commitMs = 1000;

/** Returns how far the log of a chain is needed for a moment that a copy shows; null: as far as it goes. */
export async function endForMoment(
  db: Db,
  { id }: Pick<ArchiveChain, "id">,
  { stop_position }: Pick<ArchiveCopy, "stop_position">,
  at: Date,
): Promise<number | null> {
  const mark = await db
    .selectFrom("archive_mark")
    .select("position")
    .where("chain_id", "=", id)
    .where("position", ">=", stop_position)
    .where("at", ">=", new Date(at.getTime() + commitMs).toISOString())
    .orderBy("position")
    .limit(1)
    .executeTakeFirst();
  return mark?.position ?? null;
}

/** Records that the segment which begins at a position is lost, with the last moment for which the log before it is enough. */
export async function recordLoss(db: Db, { id }: Pick<ArchiveChain, "id">, position: number): Promise<void> {
  await sql`insert into archive_loss (chain_id, position, until) select ${id}, ${position},
    (select at - make_interval(secs => ${commitMs / 1000}) from archive_mark where chain_id = ${id} and position <= ${position}
      order by position desc limit 1) on conflict do nothing`.execute(db);
}

const isIn = (inChains: readonly Pick<ArchiveChain, "id">[]) =>
  sql<boolean>`chain_id = any(${inChains.map(({ id }) => id)})`;

/** Returns the segments of these chains that are lost, in their order. */
export function lossesOf(db: Db | Tx, inChains: readonly Pick<ArchiveChain, "id">[]) {
  return db.selectFrom("archive_loss").selectAll().where(isIn(inChains)).orderBy("position").execute();
}

export type ArchiveLoss = Awaited<ReturnType<typeof lossesOf>>[number];

/** Records the moment up to which chains are stored whose databases have written nothing since. */
export async function confirmChains(db: Db, ids: readonly string[], until: Date): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable("archive_chain")
    // A restore may have stored more meanwhile.
    .set({ stored_until: sql`greatest(stored_until, ${until.toISOString()}::timestamptz)` })
    .where("id", "in", [...ids])
    .where("ended_at", "is", null)
    .execute();
}

export async function endChain(db: Db, id: string, reason: string): Promise<void> {
  await db
    .updateTable("archive_chain")
    .set({ ended_at: sql`now()`, end_reason: reason })
    .where("id", "=", id)
    .where("ended_at", "is", null)
    .execute();
}

/** Hides a chain, whose files can then be deleted. */
export async function expireChain(db: Db, id: string): Promise<void> {
  await db
    .updateTable("archive_chain")
    .set({ expired_at: sql`now()`, ended_at: sql`coalesce(ended_at, now())` })
    .where("id", "=", id)
    .execute();
}

export async function expirePurgedChains(db: Db): Promise<void> {
  await sql`update archive_chain c set expired_at = now(), ended_at = coalesce(ended_at, now()) from project p
    where p.id = c.project_id and p.org_id = c.org_id and p.purged_at is not null and c.expired_at is null`.execute(db);
}

export function expiredChains(db: Db) {
  return chains(db).where("expired_at", "is not", null).execute();
}

export async function deleteChain(db: Db, id: string): Promise<void> {
  await db.deleteFrom("archive_chain").where("id", "=", id).where("expired_at", "is not", null).execute();
}

/** Records that a chain's log begins later now. */
export async function shortenChain(db: Db, id: string, first: number): Promise<void> {
  await db.updateTable("archive_chain").set({ first_position: first }).where("id", "=", id).execute();
  for (const table of ["archive_mark", "archive_loss"] as const)
    await db.deleteFrom(table).where("chain_id", "=", id).where("position", "<", first).execute();
}

const copyColumns = [
  ...(["id", "org_id", "project_id", "chain_id", "status", "created_at", "storage_key", "restorable_from"] as const),
  ...(["start_position", "stop_position", "backup_label", "size_bytes", "sha256", "log_bytes"] as const),
];

/** Returns the copies in these chains, oldest first. */
export function copiesOf(db: Db | Tx, inChains: readonly Pick<ArchiveChain, "id">[]) {
  return db.selectFrom("archive_copy").select(copyColumns).where(isIn(inChains)).orderBy("id").execute();
}

export type ArchiveCopy = Awaited<ReturnType<typeof copiesOf>>[number];

/** Records where a copy will be stored, before its first byte is written. */
export async function beginCopy(db: Db, chain: ArchiveChain): Promise<{ id: string; storage_key: string }> {
  const id = newId("acp");
  const { org_id, project_id } = chain;
  const storage_key = `${archiveFolder(chain)}/${id}${copySuffix}`;
  await db.insertInto("archive_copy").values({ id, org_id, project_id, chain_id: chain.id, storage_key }).execute();
  return { id, storage_key };
}

const copySuffix = ".tar.zst";

export const archiveFolder = ({ org_id, project_id, id }: Pick<ArchiveChain, "org_id" | "project_id" | "id">) =>
  `archive/${org_id}/${project_id}/${id}`;

export async function completeCopy(
  db: Db,
  id: string,
  made: Pick<CopySummary, "start" | "stop" | "at" | "backup_label"> & { size_bytes: number; sha256: string },
): Promise<void> {
  const { start: start_position, stop: stop_position, at, backup_label, size_bytes, sha256 } = made;
  const row = { start_position, stop_position, backup_label, size_bytes, sha256, restorable_from: at.toISOString() };
  await db
    .updateTable("archive_copy")
    .set({ ...row, status: "completed" })
    .where("id", "=", id)
    .execute();
}

/** Records that a copy was found missing or damaged. */
export async function recordDamage(db: Db, id: string): Promise<void> {
  await db.updateTable("archive_copy").set({ status: "damaged" }).where("id", "=", id).execute();
}

/** Makes a copy an unfinished one, whose file and row the next start deletes if this process does not come to it. */
export async function abandonCopy(db: Db, id: string): Promise<void> {
  const row = { status: "copying", restorable_from: null } as const;
  await db.updateTable("archive_copy").set(row).where("id", "=", id).execute();
}

export async function deleteCopy(db: Db, id: string): Promise<void> {
  await db.deleteFrom("archive_copy").where("id", "=", id).execute();
}

export function unfinishedCopies(db: Db) {
  return db
    .selectFrom("archive_copy as b")
    .innerJoin("archive_chain as c", "c.id", "b.chain_id")
    .select(["b.id", "b.storage_key", "c.storage"])
    .where("b.status", "=", "copying")
    .execute();
}

/** Returns the databases of living projects whose archive has a problem, as `organization/project`. */
export async function troubledArchives(db: Db) {
  return db
    .selectFrom("project_database as d")
    .innerJoin("project as p", "p.id", "d.project_id")
    .innerJoin("organization as o", "o.id", "d.org_id")
    .select([sql<string>`o.slug || '/' || p.slug`.as("subject"), sql<string>`d.archive_problem`.as("problem")])
    .where("p.deleted_at", "is", null)
    .where("d.archived", "=", true)
    .where("d.archive_problem", "is not", null)
    .execute();
}

export async function isBeingArchived(db: Db, key: string): Promise<boolean> {
  const [folder, , , id = "", name = ""] = key.split("/");
  if (folder !== "archive") return false;
  const chain = (await openChains(db)).find((each) => each.id === id);
  if (name.endsWith(copySuffix)) return (await unfinishedCopies(db)).some(({ storage_key }) => storage_key === key);
  return chain !== undefined && name >= segmentName(chain, chain.stored_position);
}

/** Records why a database's log is not being stored; null: it is. */
export async function setArchiveProblem(db: Db, databaseId: string, problem: string | null): Promise<void> {
  await db
    .updateTable("project_database")
    .set({ archive_problem: problem })
    .where("id", "=", databaseId)
    .where("archive_problem", "is distinct from", problem)
    .execute();
}

export async function setArchived(tx: Tx, { org_id, project_id }: ProjectKey, archived: boolean): Promise<void> {
  await tx
    .updateTable("project_database")
    .set({ archived, archive_problem: null })
    .where(({ and }) => and({ org_id, project_id }))
    .execute();
}

/** Returns which database was the live one at a moment: what the first promotion after it replaced, else the one that is live now. */
export async function liveNameAt(db: Db, { org_id, project_id }: ProjectKey, at: Date, now: string): Promise<string> {
  const promoted = await db
    .selectFrom("activity")
    .select(sql<string | null>`detail ->> 'previous'`.as("previous"))
    .where(({ and }) => and({ org_id, project_id, action: "database.promoted" }))
    .where("created_at", ">", at.toISOString())
    .orderBy("created_at")
    .limit(1)
    .executeTakeFirst();
  return promoted?.previous ?? now;
}
