import { sql } from "kysely";
import type { Failure } from "../../ports/failure.ts";
import type { DatabaseEndpoint } from "../../ports/postgres-host.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { freshLease, holds, type Lease } from "../../store/leases.ts";

// A preview that sleeps: its server stops once nothing of the preview runs; see `sleepingServers`.
const isAsleep = (project: string) =>
  sql<boolean>`coalesce(${sql.ref(`${project}.preview_of`)} is not null and ${sql.ref(`${project}.sleep`)} = 'asleep', false)`.as(
    "is_asleep",
  );

const columns = [
  "project_database.id",
  "project_database.org_id",
  "project_database.project_id",
  "project_database.status",
  "project_database.role_name",
  "project_database.database_name",
  "project_database.sealed_password",
  "project_database.port",
  "project_database.host",
  "project_database.engine_version",
  "project_database.failure",
  "project_database.created_at",
  "project_database.ready_at",
  "project_database.archived",
  "project_database.archive_problem",
  "project.number as project_number",
  "project.deleted_at as project_deleted_at",
  "project.updated_at as project_updated_at",
  sql<string | null>`project.id`.as("user_id"),
  "project.sleep_at as user_sleep_at",
  isAsleep("project"),
  "disk_use.database_access",
] as const;

const joined = (db: Db | Tx) =>
  db
    .selectFrom("project_database")
    .innerJoin("project", "project.id", "project_database.project_id")
    .leftJoin("disk_use", "disk_use.project_id", "project_database.project_id")
    .select(columns);

/** Returns the project's database, or its branch of this name, if that is ready. */
export async function databaseOf(
  db: Db | Tx,
  orgId: string,
  projectId: string,
  branch: string | null = null,
): Promise<DatabaseRow | undefined> {
  if (branch !== null) return readyBranch(db, { org_id: orgId, project_id: projectId, name: branch });
  return joined(db)
    .where(({ and }) => and({ "project_database.org_id": orgId, "project_database.project_id": projectId }))
    .executeTakeFirst();
}

const branchColumns = [
  ...(["b.id", "b.org_id", "b.project_id", "b.role_name", "b.database_name", "b.sealed_password"] as const),
  ...(["b.port", "b.host", "b.engine_version", "b.created_at", "b.ready_at", "b.access as database_access"] as const),
  "project.number as project_number",
  "project.deleted_at as project_deleted_at",
  "project.updated_at as project_updated_at",
  "user.id as user_id",
  "user.sleep_at as user_sleep_at",
  isAsleep("user"),
] as const;

const readyBranches = (db: Db | Tx) =>
  db
    .selectFrom("database_branch as b")
    .innerJoin("project", "project.id", "b.project_id")
    .leftJoin("project as user", "user.id", "b.used_by")
    .select(branchColumns)
    .where("b.status", "=", "ready");

const asDatabase = { status: "ready", failure: null, archived: false, archive_problem: null } as const;

async function readyBranch(
  db: Db | Tx,
  key: { readonly org_id: string; readonly project_id?: string; readonly name?: string; readonly used_by?: string },
): Promise<DatabaseRow | undefined> {
  const conditions = Object.entries(key).map(([column, value]) => sql<boolean>`${sql.ref(`b.${column}`)} = ${value}`);
  const row = await readyBranches(db)
    .where(({ and }) => and(conditions))
    .executeTakeFirst();
  return row && { ...row, ...asDatabase };
}

/** Returns the project's database as one of its deployments uses it, which may not be the live one but a branch made for the project. */
export async function databaseOfDeployment(
  db: Db,
  deployment: { readonly id: string; readonly org_id: string; readonly project_id: string },
): Promise<DatabaseRow | undefined> {
  const row = await joined(db)
    .leftJoin("deployment", (join) =>
      join
        .onRef("deployment.project_id", "=", "project_database.project_id")
        .on("deployment.org_id", "=", deployment.org_id)
        .on("deployment.id", "=", deployment.id),
    )
    .select("deployment.database_name as kept_name")
    .where("project_database.org_id", "=", deployment.org_id)
    .where("project_database.project_id", "=", deployment.project_id)
    .executeTakeFirst();
  if (row === undefined) return readyBranch(db, { org_id: deployment.org_id, used_by: deployment.project_id });
  return { ...row, database_name: row.kept_name ?? row.database_name };
}

export type DatabaseRow = NonNullable<Awaited<ReturnType<ReturnType<typeof joined>["executeTakeFirst"]>>>;

export type NewDatabase = Columns<"project_database", "id" | "org_id" | "project_id" | "role_name" | "database_name"> &
  Columns<"project_database", "sealed_password"> &
  Partial<Columns<"project_database", "archived">>;

export async function insertDatabase(tx: Tx, row: NewDatabase): Promise<boolean> {
  const done = await tx
    .insertInto("project_database")
    .values(row)
    .onConflict((on) => on.column("project_id").doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

/** Lets a failed database be provisioned again; `startEmpty` allows a new one in place of a missing one. */
export async function retryDatabase(tx: Tx, orgId: string, id: string, startEmpty: boolean): Promise<void> {
  await tx
    .updateTable("project_database")
    .set({ status: "provisioning", failure: null, ...(startEmpty ? { ready_at: null } : {}) })
    .where(({ and }) => and({ org_id: orgId, id, status: "failed" }))
    .execute();
}

/** Whether a project is a preview that sleeps, of which nothing runs any more. */
const sleeps = (project: string) =>
  sql<boolean>`exists (select from project s where s.id = ${sql.ref(project)} and s.preview_of is not null and s.sleep = 'asleep'
    and not exists (select from replica r where r.project_id = s.id and r.state <> 'stopped'))`;

/** Returns every database that should run: of living projects but sleeping previews, and those that a backup operation needs. */
export async function wantedDatabases(db: Db) {
  return joined(db)
    .where((where) =>
      where.or([
        where.and([where("project.deleted_at", "is", null), where.not(sleeps("project.id"))]),
        where.exists((of) =>
          of
            .selectFrom("backup_operation")
            .select("backup_operation.id")
            .whereRef("backup_operation.project_id", "=", "project_database.project_id")
            .where("backup_operation.status", "=", sql.lit("running")),
        ),
      ]),
    )
    .orderBy("project.number")
    .execute();
}

export interface SleepingServer {
  readonly id: string;
  readonly used_by: string;
}

/** Returns what these projects use as their database: their own that should run, or a branch of another project's. */
export async function databasesUsedBy(db: Db, projectIds: ReadonlySet<string>) {
  const own = (await wantedDatabases(db)).filter((row) => projectIds.has(row.project_id));
  const branches = await readyBranches(db)
    .where("user.id", "in", [...projectIds])
    .execute();
  return [...own, ...branches.map((row) => ({ ...row, ...asDatabase }))];
}

/** Returns the databases and branches whose servers are to stop: previews use them that sleep. */
export async function sleepingServers(db: Db): Promise<readonly SleepingServer[]> {
  const { rows } = await sql<SleepingServer>`
    select d.id, d.project_id as used_by from project_database d where d.status = 'ready' and ${sleeps("d.project_id")}
      and not exists (select from backup_operation o where o.project_id = d.project_id and o.status = 'running')
    union all
    select b.id, b.used_by from database_branch b where b.status = 'ready' and ${sleeps("b.used_by")}`.execute(db);
  return rows;
}

/** Claims a database row; returns undefined when another worker holds it. */
export async function takeDatabase(db: Db, id: string, owner: string): Promise<Lease | undefined> {
  const taken = await db
    .updateTable("project_database")
    .set({ lease_owner: owner, lease_until: freshLease, fence: sql`fence + 1` })
    .where("id", "=", id)
    .where((where) =>
      where.or([
        where("lease_owner", "is", null),
        where("lease_owner", "=", owner),
        where("lease_until", "<=", sql<string>`now()`),
      ]),
    )
    .returning("fence")
    .executeTakeFirst();
  return taken && { table: "project_database", id, owner, fence: taken.fence };
}

export async function databaseReady(tx: Tx, lease: Lease, endpoint: DatabaseEndpoint): Promise<boolean> {
  const { host, port, engine_version } = endpoint;
  const done = await tx
    .updateTable("project_database")
    .set({
      status: "ready",
      failure: null,
      host,
      port,
      engine_version,
      ready_at: sql`coalesce(ready_at, now())`,
      lease_owner: null,
      lease_until: null,
    })
    .where(holds(lease))
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

export async function databaseFailed(db: Db, lease: Lease, failure: Failure): Promise<void> {
  await db
    .updateTable("project_database")
    .set({ status: "failed", failure: JSON.stringify(failure), lease_owner: null, lease_until: null })
    .where(holds(lease))
    .execute();
}
