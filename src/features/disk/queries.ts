import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { changeProject, type ProjectKey } from "../projects/projects.ts";
import type { DatabaseDiskState, DiskLimits, StorageAccess } from "./rules.ts";

/** A project's disk use as last measured, and the access that results from it. */
export interface DiskUseRow extends Measured {
  readonly measured_at: string | null;
  readonly storage_access: StorageAccess;
  readonly database_access: DatabaseDiskState["access"];
  readonly database_reopens_at: string | null;
}

type Measured = Columns<"disk_use", "storage_bytes" | "database_bytes" | "images_bytes">;

type OwnLimits = Columns<
  "project",
  "storage_limit_bytes" | "database_limit_bytes" | "images_limit_bytes" | "backups_limit_bytes"
>;

/** The disk use of a project that has not been measured yet. */
const unmeasured: DiskUseRow = {
  storage_bytes: null,
  database_bytes: null,
  images_bytes: null,
  measured_at: null,
  storage_access: "open",
  database_access: "open",
  database_reopens_at: null,
};

export async function selectDiskUse(db: Db | Tx, project: ProjectKey): Promise<{ use: DiskUseRow; own: OwnLimits }> {
  const row = await db
    .selectFrom("project")
    .leftJoin("disk_use", "disk_use.project_id", "project.id")
    .select(["storage_limit_bytes", "database_limit_bytes", "images_limit_bytes", "backups_limit_bytes"])
    .select(["storage_bytes", "database_bytes", "images_bytes", "measured_at"])
    .select(["storage_access", "database_access", "database_reopens_at"])
    .where(({ and }) => and({ "project.org_id": project.org_id, "project.id": project.project_id }))
    .executeTakeFirstOrThrow();
  const { storage_limit_bytes, database_limit_bytes, images_limit_bytes, backups_limit_bytes, ...use } = row;
  const { storage_access, database_access } = use;
  return {
    own: { storage_limit_bytes, database_limit_bytes, images_limit_bytes, backups_limit_bytes },
    use: storage_access === null || database_access === null ? unmeasured : { ...use, storage_access, database_access },
  };
}

export async function selectBackupsBytes(db: Db | Tx, project: ProjectKey): Promise<number> {
  const row = await db
    .selectFrom("backup")
    .select((of) => of.fn.coalesce(of.fn.sum<number>("size_bytes"), of.lit(0)).as("bytes"))
    .where(({ and }) =>
      and({ org_id: project.org_id, project_id: project.project_id, storage: "disk", content: "database" }),
    )
    .where("expired_at", "is", null)
    .executeTakeFirstOrThrow();
  const pieces = await db
    .selectFrom("storage_piece")
    .select((of) => of.fn.coalesce(of.fn.sum<number>("bytes"), of.lit(0)).as("bytes"))
    .where(({ and }) => and({ org_id: project.org_id, project_id: project.project_id, storage: "disk" }))
    .executeTakeFirstOrThrow();
  return Number(row.bytes) + Number(pieces.bytes);
}

/** Sets a project's own limits; null means the installation's. */
export async function setOwnLimits(tx: Tx, project: ProjectKey, limits: Partial<OwnLimits>): Promise<void> {
  await changeProject(tx, project, limits);
}

/** Claims one project that is due to be measured; the claim expires after a while. Returns undefined when none is due. */
export async function takeDueProject(db: Db) {
  await sql`
    insert into disk_use (project_id, org_id, next_at) select p.id, p.org_id, now() from project p
    where p.purged_at is null and not exists (select 1 from disk_use u where u.project_id = p.id) on conflict do nothing`.execute(
    db,
  );
  const { rows } = await sql<ProjectKey & { project_number: number; has_stored_files: boolean }>`
    update disk_use u set next_at = now() + interval '10 minutes' from project p
    where p.id = u.project_id and u.project_id = (select project_id from disk_use where next_at <= now() order by next_at limit 1 for update skip locked)
    returning u.project_id, u.org_id, p.number as project_number, p.storage and coalesce(u.storage_bytes, 0) > 0 as has_stored_files`.execute(
    db,
  );
  return rows[0];
}

/** Stores a measurement and schedules the next one: sooner the closer the project is to its limit, later if measuring takes long. */
export async function saveMeasured(
  db: Db,
  projectId: string,
  measured: Pick<Measured, "storage_bytes" | "images_bytes"> & { readonly limits: DiskLimits; readonly tookMs: number },
): Promise<void> {
  const { storage_bytes, images_bytes, limits, tookMs } = measured;
  await sql`
    update disk_use u set storage_bytes = coalesce(m.storage, u.storage_bytes), images_bytes = coalesce(m.images, u.images_bytes), measured_at = now(),
      next_at = now() + make_interval(secs => greatest(${tookMs / 50}::double precision, case when m.storage * 2 > m.most then 15 when m.storage * 10 > m.most then 60 else 600 end))
    from (select ${storage_bytes}::bigint as storage, ${images_bytes}::bigint as images, coalesce(p.storage_limit_bytes, ${limits.storage_bytes}::bigint) as most
      from project p where p.id = ${projectId}) m
    where u.project_id = ${projectId}`.execute(db);
}

/** Stores the size of a storage folder after something in it was deleted. */
export async function saveStorageSize(db: Db, projectId: string, bytes: number | null): Promise<void> {
  if (bytes === null) return;
  await sql`update disk_use set storage_bytes = ${bytes}, measured_at = now() where project_id = ${projectId}`.execute(
    db,
  );
}

/** Schedules all projects to be measured soon, even recently measured ones, because one of them has written a lot. */
export async function measureAllSoon(db: Db): Promise<void> {
  await sql`update disk_use set next_at = least(next_at, greatest(now(), measured_at + interval '30 seconds'))`.execute(
    db,
  );
}

/** Stores the size of a project's database if it has changed by more than a mebibyte, or if compacting has started or ended. */
export async function saveDatabaseSize(
  db: Db,
  project: ProjectKey,
  seen: { readonly size_bytes: number; readonly compacting: boolean },
): Promise<void> {
  const { size_bytes, compacting } = seen;
  await sql`
    insert into disk_use (project_id, org_id, next_at, database_bytes, database_compacting)
    values (${project.project_id}, ${project.org_id}, now(), ${size_bytes}, ${compacting})
    on conflict (project_id) do update set database_bytes = ${size_bytes}, database_compacting = ${compacting}
    where disk_use.database_compacting <> ${compacting} or disk_use.database_bytes is null
      or abs(disk_use.database_bytes - ${size_bytes}) > 1048576`.execute(db);
}

/** A project whose access must be decided. */
export interface Undecided extends DatabaseDiskState, ProjectKey {
  readonly storage_bytes: number;
  readonly storage_access: StorageAccess;
  readonly database_bytes: number;
  readonly compacting: boolean;
  readonly storage_limit: number;
  readonly database_limit: number;
  readonly slug: string;
}

/** Returns the projects that are over a limit or whose access is restricted; with `all`, also every project that uses more than 64 MiB. */
export async function undecidedProjects(db: Db, limits: DiskLimits, all: boolean): Promise<readonly Undecided[]> {
  const { rows } = await sql<Undecided>`
    select * from (select u.project_id, u.org_id, p.slug, coalesce(u.storage_bytes, 0) as storage_bytes, u.storage_access, coalesce(u.database_bytes, 0) as database_bytes,
        u.database_access as access, u.database_compacting as compacting, u.database_ceiling_bytes as ceiling_bytes,
        u.database_closings as closings, u.database_reopens_at as reopens_at,
        coalesce(p.storage_limit_bytes, ${limits.storage_bytes}::bigint) as storage_limit, coalesce(p.database_limit_bytes, ${limits.database_bytes}::bigint) as database_limit
      from disk_use u join project p on p.id = u.project_id) each
    where storage_bytes > storage_limit or database_bytes > database_limit or storage_access <> 'open' or access <> 'open'
      or (${all} and storage_bytes + database_bytes > 67108864)`.execute(db);
  return rows;
}

/** Returns the average use, over the projects that use anything; a branch of a database counts as one more. */
export async function averageUse(db: Db): Promise<{ readonly storage: number; readonly database: number }> {
  const { rows } = await sql<{ storage: number; database: number }>`
    select coalesce(avg(nullif(storage_bytes, 0)), 0)::double precision as storage, (
      select coalesce(avg(nullif(bytes, 0)), 0)::double precision from (select database_bytes as bytes from disk_use
        union all select size_bytes from database_branch where status = 'ready') each) as database
    from disk_use`.execute(db);
  return rows[0] ?? { storage: 0, database: 0 };
}

export async function saveAccess(
  tx: Tx,
  projectId: string,
  next: { readonly storage: StorageAccess; readonly database: DatabaseDiskState },
): Promise<void> {
  const { access, ceiling_bytes, closings, reopens_at } = next.database;
  await tx
    .updateTable("disk_use")
    .set({
      storage_access: next.storage,
      database_access: access,
      database_ceiling_bytes: ceiling_bytes,
      database_closings: closings,
      database_reopens_at: reopens_at,
    })
    .where("project_id", "=", projectId)
    .execute();
}

/** Returns whether a project's storage folder is writable (`none` when it has no storage), and whether it held files when it was measured. */
export async function storageOf(db: Db, projectId: string) {
  const row = await db
    .selectFrom("project as p")
    .leftJoin("disk_use as u", "u.project_id", "p.id")
    .select(["p.storage", "u.storage_access", "u.storage_bytes"])
    .where("p.id", "=", projectId)
    .executeTakeFirst();
  if (row?.storage === false) return { storage_access: "none" as const, has_stored_files: false };
  return { storage_access: row?.storage_access ?? "open", has_stored_files: (row?.storage_bytes ?? 0) > 0 };
}

/** Returns the active deployment, whose replicas use the storage folder. */
export async function servingDeployment(db: Db, projectId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom("deployment")
    .select("id")
    .where(({ and }) => and({ project_id: projectId, status: "active" }))
    .executeTakeFirst();
  return row?.id;
}
