import { sql } from "kysely";
import type { Failure } from "../../ports/failure.ts";
import type { Image } from "../../ports/builder.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import type { DeploymentSettings } from "./read-source-settings.ts";
import { claimRow, freshLease, holds, isNoneOf, type InProgress, type Lease } from "../../store/leases.ts";

export interface NewBuild extends Columns<
  "build",
  "id" | "org_id" | "project_id" | "origin" | "commit" | "branch" | "message" | "old_commit"
> {
  /** Empty or null when unknown. */
  readonly author: string | null;
  readonly requested_by: string;
  /** The token by which it was requested, also through an SSH key. */
  readonly token_id?: string | null;
  /** The process that waits for a push's outcome. The build is abandoned when this process ends. */
  readonly lease_owner: string | null;
  /** A token in approval mode requested it, so copies of the data are completed before its release command. */
  readonly copies_data?: boolean;
  /** The runtime that the project is moving to. */
  readonly runtime?: string | null;
  /** The build of a preview whose image the project gets. */
  readonly promoted_from?: string | null;
  /** Its release command only runs on a copy of the data. Only a build of origin `push` may be so. */
  readonly rehearse_only?: boolean;
  /** The request for an approval that it is rehearsed for. */
  readonly approval_id?: string | null;
}

export async function supersedeQueued(tx: Tx, orgId: string, projectId: string): Promise<void> {
  await tx
    .updateTable("build")
    .set({ status: "superseded", finished_at: sql`now()` })
    .where(({ and }) => and({ org_id: orgId, project_id: projectId, status: "queued" }))
    .execute();
}

export async function insertBuild(tx: Tx, build: NewBuild): Promise<number> {
  const row = await tx
    .insertInto("build")
    .values({
      ...build,
      author: build.author || null,
      number: sql<number>`(select coalesce(max(number), 0) + 1 from build where project_id = ${build.project_id})`,
      lease_until: build.lease_owner === null ? null : freshLease,
    })
    .returning("number")
    .executeTakeFirstOrThrow();
  return row.number;
}

/** Renews the lease of a build whose push waits; returns whether the build is still queued. */
export async function renewWaiting(db: Db, id: string, owner: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("build")
    .set({ lease_until: freshLease })
    .where(({ and }) => and({ id, lease_owner: owner, status: "queued" }))
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Claims the oldest queued build of a project with no running build or removal of images. A push holds the lease of its own. */
export function takeQueued(db: Db, owner: string, inProgress: InProgress): Promise<TakenBuild | undefined> {
  return claimRow<TakenBuild>(db, {
    ...{ table: "build", owner, inProgress, order: "created_at" },
    joins: sql`join organization o on o.id = q.org_id`,
    due: sql`o.suspended_at is null and q.status = 'queued'
      and not exists (select 1 from build r where r.project_id = q.project_id and r.status = 'running')
      and not exists (select 1 from image_pruning i where i.project_id = q.project_id and i.lease_until > now())`,
    free: sql`(q.origin <> 'push' or q.rehearse_only or q.lease_until > now())`,
    set: sql`, status = 'running', started_at = now()`,
    from: sql`join project p on p.id = q.project_id`,
    returning: sql`t.id, t.org_id, t.project_id, t.number, t.origin, t.commit, t.old_commit, t.branch, t.fence, t.promoted_from, t.rehearse_only, p.number as project_number, p.slug,
      p.hostname, p.sealed_cron_secret, p.deleted_at, p.root, p.port, p.health_path,
      coalesce(t.runtime, ${runtimeOf("p.preview_of")}, ${runtimeOf("p.id")}) as runtime`,
  });
}

/** A preview is built for the runtime of its project, so that its image can serve there. */
function runtimeOf(column: string) {
  return sql`(select d.image ->> 'runtime' from deployment d where d.project_id = ${sql.ref(column)} and d.status = 'active')`;
}

export interface TakenBuild
  extends
    Columns<"build", "id" | "org_id" | "project_id" | "number" | "origin" | "commit" | "old_commit" | "branch">,
    Columns<"build", "fence" | "promoted_from" | "rehearse_only">,
    Columns<"project", "hostname" | "sealed_cron_secret" | "slug" | "deleted_at" | "root" | "port">,
    Columns<"project", "health_path"> {
  readonly project_number: number;
  /** The runtime that the image is for; null: the platform's default. */
  readonly runtime: string | null;
}

/** What a build of a preview has made; undefined once it is gone. */
export async function promotedBuild(db: Db, org_id: string, id: string) {
  const row = await db
    .selectFrom("build")
    .innerJoin("project", "project.id", "build.project_id")
    .select(["build.project_id", "build.number", "build.image", "build.settings", "project.slug"])
    .where("build.org_id", "=", org_id)
    .where("build.id", "=", id)
    .executeTakeFirst();
  return row as
    | (Omit<typeof row & {}, "image" | "settings"> & { image: Image | null; settings: DeploymentSettings | null })
    | undefined;
}

export interface BuildEnd {
  readonly status: "succeeded" | "failed" | "cancelled";
  readonly image?: Image;
  readonly settings?: DeploymentSettings;
  readonly failure?: Failure;
}

/** Ends a running build if the lease still holds; returns false when it doesn't. */
export async function endBuild(db: Db | Tx, lease: Lease, end: BuildEnd): Promise<boolean> {
  const done = await db
    .updateTable("build")
    .set({
      status: end.status,
      image: end.image === undefined ? null : JSON.stringify(end.image),
      image_ref: end.image?.image_ref ?? null,
      settings: end.settings === undefined ? null : JSON.stringify(end.settings),
      failure: end.failure === undefined ? null : JSON.stringify(end.failure),
      finished_at: sql`now()`,
      lease_until: null,
    })
    .where(holds(lease))
    .where("status", "=", "running")
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/**
 * Closes builds whose control plane is gone. Pushed builds fail, because the push failed too; redeploys are queued once more, and only
 * once, because a build that stops the control plane twice would do so forever. A build's fence rises by one when it is claimed and by one
 * here.
 */
export async function closeInterrupted(
  db: Db,
  failure: Failure,
  underWay: readonly string[],
): Promise<readonly { id: string; project_id: string; status: string }[]> {
  const isOver = sql`(origin = 'push' or fence >= 3)`;
  const closed = await sql<{ id: string; project_id: string; status: string }>`
    update build set
      status = case when ${isOver} then 'failed' else 'queued' end,
      failure = case when ${isOver} then ${JSON.stringify(failure)}::jsonb end,
      finished_at = case when ${isOver} then now() end,
      lease_owner = null, lease_until = null, fence = fence + 1
    where (status = 'running' or (status = 'queued' and origin = 'push')) and lease_until <= now()
      and ${isNoneOf(underWay)}
    returning id, project_id, status`.execute(db);
  return closed.rows;
}

export async function progressOf(db: Db, orgId: string, buildId: string) {
  return db
    .selectFrom("build")
    .leftJoin("deployment", "deployment.build_id", "build.id")
    .select([
      "build.status as build",
      "deployment.status as deployment",
      sql<boolean>`coalesce(deployment.lease_until > now(), false)`.as("leased"),
    ])
    .where(({ and }) => and({ "build.org_id": orgId, "build.id": buildId }))
    .orderBy("deployment.number", "asc")
    .limit(1)
    .executeTakeFirst();
}

/** Cancels a queued or running build; raising the fence takes it away from its worker. Returns false when it had already ended. */
export async function cancelBuild(db: Db | Tx, orgId: string, id: string): Promise<boolean> {
  const cancelled = await db
    .updateTable("build")
    .set({ status: "cancelled", finished_at: sql`now()`, lease_until: null, fence: sql`fence + 1` })
    .where(({ and }) => and({ org_id: orgId, id }))
    .where("status", "in", ["queued", "running"])
    .executeTakeFirst();
  return cancelled.numUpdatedRows > 0n;
}
