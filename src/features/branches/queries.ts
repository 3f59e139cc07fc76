import { sql } from "kysely";
import type { Failure } from "../../ports/failure.ts";
import type { DatabaseEndpoint } from "../../ports/postgres-host.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { claimRow, holds, type InProgress, type Lease } from "../../store/leases.ts";
import type { ProjectKey } from "../projects/projects.ts";

const shown = [
  ...(["b.name", "b.status", "b.shows", "b.mask_commit", "b.method", "b.copy_bytes", "b.expected_seconds"] as const),
  ...(["b.size_bytes", "b.size_limit_bytes", "b.access", "b.problem_code", "b.problem"] as const),
  ...(["b.created_at", "b.ready_at", "b.expires_at", "b.id", "user.slug as used_by"] as const),
] as const;

const joined = (db: Db | Tx, { org_id, project_id }: ProjectKey) =>
  db
    .selectFrom("database_branch as b")
    .leftJoin("project as user", "user.id", "b.used_by")
    .select(shown)
    .where(({ and }) => and({ "b.org_id": org_id, "b.project_id": project_id }));

/** Returns the project's branches, newest first. */
export async function listBranches(db: Db | Tx, project: ProjectKey) {
  return joined(db, project).orderBy("b.id", "desc").execute();
}

/** Returns the project's branch of this name. One that is being deleted has given its name up. */
export async function selectBranch(db: Db | Tx, project: ProjectKey, name: string) {
  return joined(db, project).where("b.name", "=", name).where("b.status", "<>", "deleting").executeTakeFirst();
}

export type BranchRow = NonNullable<Awaited<ReturnType<typeof selectBranch>>>;

export type NewBranch = Columns<
  "database_branch",
  "id" | "org_id" | "project_id" | "used_by" | "name" | "shows" | "mask_commit" | "role_name" | "database_name"
> &
  Columns<"database_branch", "sealed_password" | "expires_at">;

// A literal, because PostgreSQL matches the partial index by the statement's text, not by a parameter's value.
const deleting = sql.lit<"deleting">("deleting");

/** Inserts the branch in place of a failed one of its name. Returns false when another one has the name. */
export async function insertBranch(tx: Tx, branch: NewBranch): Promise<boolean> {
  const { org_id, project_id, name } = branch;
  await tx
    .deleteFrom("database_branch")
    .where(({ and }) => and({ org_id, project_id, name, status: "failed" }))
    .execute();
  const done = await tx
    .insertInto("database_branch")
    .values(branch)
    .onConflict((on) => on.columns(["project_id", "name"]).where("status", "<>", deleting).doNothing())
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

/** Returns how many branches the project has for people, and the platform in all, that count. One transaction counts at a time. */
export async function countBranches(tx: Tx, { project_id }: ProjectKey) {
  await sql`select pg_advisory_xact_lock(hashtext('berth branches'))`.execute(tx);
  const { rows } = await sql<{ project: number; platform: number }>`
    select count(*) filter (where project_id = ${project_id} and used_by is null)::int as project, count(*)::int as platform
    from database_branch where status not in ('failed', 'deleting')`.execute(tx);
  return rows[0] ?? { project: 0, platform: 0 };
}

/** Marks a branch for deletion, and takes it from a worker that makes it. */
export async function markDeleting(tx: Tx, orgId: string, id: string): Promise<void> {
  await tx
    .updateTable("database_branch")
    .set({ status: "deleting", fence: sql`fence + 1`, lease_owner: null, lease_until: null })
    .where(({ and }) => and({ org_id: orgId, id }))
    .execute();
}

export interface TakenBranch extends Columns<
  "database_branch",
  "id" | "org_id" | "project_id" | "used_by" | "name" | "status" | "shows" | "mask_commit" | "database_name"
> {
  readonly sealed_password: Buffer;
  readonly expires_at: string;
  readonly attempts: number;
  readonly fence: number;
  /** Its project is deleted, or the one that uses it. */
  readonly is_abandoned: boolean;
  /** The project's own setting for its folder. */
  readonly root: string | null;
}

/** Claims a branch that is to be made, or that has ended. */
export function takeBranch(
  db: Db,
  owner: string,
  { inProgress, now }: { readonly inProgress: InProgress; readonly now: Date },
): Promise<TakenBranch | undefined> {
  const abandoned = sql`exists (select 1 from project p where p.id in (q.project_id, q.used_by) and p.deleted_at is not null)`;
  return claimRow<TakenBranch>(db, {
    ...{ table: "database_branch", owner, inProgress, order: "created_at" },
    due: sql`(q.status in ('copying', 'deleting') or (q.used_by is null and q.expires_at <= ${now}) or ${abandoned})`,
    set: sql`, attempts = q.attempts + 1`,
    returning: sql`(select p.root from project p where p.id = t.project_id) as root, t.id, t.org_id, t.project_id, t.used_by, t.name, t.status, t.shows, t.mask_commit, t.database_name,
      t.sealed_password, t.expires_at, t.attempts, t.fence,
      exists (select 1 from project p where p.id in (t.project_id, t.used_by) and p.deleted_at is not null) as is_abandoned`,
  });
}

/** Records what a worker finds out before it copies. */
export async function updateBranch(
  db: Db | Tx,
  lease: Lease,
  change: Partial<Columns<"database_branch", "method" | "copy_bytes" | "expected_seconds" | "database_name">>,
): Promise<void> {
  await db.updateTable("database_branch").set(change).where(holds(lease)).execute();
}

/** Gives the branch back, so that any worker can claim it after the pause; `uncounted`: the attempt was not at fault. */
export async function releaseBranch(
  db: Db,
  lease: Lease,
  { pauseSeconds, uncounted }: { readonly pauseSeconds: number; readonly uncounted: boolean },
): Promise<void> {
  await db
    .updateTable("database_branch")
    .set({
      lease_owner: null,
      lease_until: sql`now() + make_interval(secs => ${pauseSeconds})`,
      attempts: uncounted ? sql`attempts - 1` : sql`attempts`,
    })
    .where(holds(lease))
    .execute();
}

/** Ends the making of a branch: it is ready, or has failed. Returns false when the lease was lost. */
export async function endBranch(
  tx: Tx,
  lease: Lease,
  end: (DatabaseEndpoint & { readonly size_limit_bytes: number }) | Pick<Failure, "code" | "summary">,
): Promise<boolean> {
  const change =
    "code" in end
      ? { status: "failed" as const, problem_code: end.code, problem: end.summary }
      : { ...end, status: "ready" as const, ready_at: sql<string>`now()` };
  const done = await tx
    .updateTable("database_branch")
    .set({ ...change, lease_owner: null, lease_until: null })
    .where(holds(lease))
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

export async function deleteBranch(tx: Tx, lease: Lease): Promise<boolean> {
  const done = await tx.deleteFrom("database_branch").where(holds(lease)).executeTakeFirst();
  return done.numDeletedRows === 1n;
}

/** Returns the branch that a project uses as its database; undefined when there is none or it is being deleted. */
export async function branchUsedBy(db: Db | Tx, { org_id, project_id: used_by }: ProjectKey) {
  return db
    .selectFrom("database_branch")
    .select(["id", "status", "problem"])
    .where(({ and }) => and({ org_id, used_by }))
    .where("status", "<>", "deleting")
    .executeTakeFirst();
}

/** Lets the branch that a project uses end at another time. */
export async function extendBranch(tx: Tx, { org_id, project_id: used_by }: ProjectKey, expires: Date): Promise<void> {
  await tx
    .updateTable("database_branch")
    .set({ expires_at: expires.toISOString() })
    .where(({ and }) => and({ org_id, used_by }))
    .execute();
}

/** Returns the branches that must run: all that are ready, except those of previews that sleep. */
export async function runningBranches(db: Db) {
  return db
    .selectFrom("database_branch as b")
    .leftJoin("project as user", "user.id", "b.used_by")
    .select(["b.id", "b.org_id", "b.project_id", "b.used_by", "b.name", "b.size_limit_bytes", "b.problem_code"])
    .where("b.status", "=", "ready")
    .where((where) => where.or([where("user.sleep", "is", null), where("user.sleep", "<>", "asleep")]))
    .orderBy("b.id")
    .execute();
}

/** Records what was found out about a ready branch. */
export async function saveBranch(
  db: Db | Tx,
  { org_id, id }: { readonly org_id: string; readonly id: string },
  change: Partial<
    Columns<"database_branch", "size_bytes" | "access" | "host" | "port" | "engine_version"> &
      Columns<"database_branch", "status" | "problem_code" | "problem">
  >,
): Promise<void> {
  await db
    .updateTable("database_branch")
    .set(change)
    .where(({ and }) => and({ org_id, id, status: "ready" }))
    .execute();
}

/** Returns which of these branches have no row, so that nothing of them may be left. */
export async function unknownBranches(db: Db, ids: readonly string[]): Promise<readonly string[]> {
  if (ids.length === 0) return [];
  const known = await db.selectFrom("database_branch").select("id").where("id", "in", ids).execute();
  const names = new Set(known.map(({ id }) => id));
  return ids.filter((id) => !names.has(id));
}
