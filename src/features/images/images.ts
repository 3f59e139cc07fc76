import { sql } from "kysely";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import { freshLease, holds, type Lease } from "../../store/leases.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { lockProject } from "../projects/projects.ts";

/** Number of earlier good images kept for rollbacks, in addition to the active one. Semantics, §6. */
const keptGood = 5;

/** The size of a deployment's image; null once it is deleted. */
export const imageBytes = (table: "deployment" | "d" = "deployment") =>
  sql<
    number | null
  >`case when ${sql.ref(table)}.image_pruned_at is null then (${sql.ref(table)}.image ->> 'size_bytes')::bigint end`.as(
    "image_bytes",
  );

/** Returns the projects that have deployments, oldest first. */
export async function projectsWithImages(db: Db): Promise<readonly { id: string; org_id: string }[]> {
  return db
    .selectFrom("project")
    .select(["id", "org_id"])
    .where("deploy_branch", "is not", null)
    .orderBy("number")
    .execute();
}

/** The right to remove these images of a project. The project's builds wait until `endPruning`, or until the lease expires. */
export interface Pruning {
  readonly lease: Lease;
  readonly images: readonly string[];
}

/**
 * Claims those of these images that are no longer needed, and marks their deployments so that no rollback uses them. Needed are the images
 * of the active deployment, of deployments in progress and of the newest good ones. Returns undefined when none can be removed, and while a
 * build is queued or running, because it may create the same image again.
 */
export async function claimPruning(
  db: Db,
  project: { id: string; org_id: string },
  { images, owner }: { readonly images: readonly string[]; readonly owner: string },
): Promise<Pruning | undefined> {
  if (images.length === 0) return undefined;
  return db.transaction().execute(async (tx) => {
    // Builds are queued under the same lock, so a build comes either before this check or after the claim.
    await lockProject(tx, { org_id: project.org_id, project_id: project.id });
    if (await hasOpenBuild(tx, project)) return undefined;
    const needed = await neededImages(tx, project, images);
    const doomed = images.filter((image) => !needed.has(image));
    if (doomed.length === 0) return undefined;
    const lease = await claim(tx, project, owner);
    if (lease === undefined) return undefined;
    await markPruned(tx, project, doomed);
    return { lease, images: doomed };
  });
}

export interface ListedImages {
  readonly images: readonly string[];
  /** When they were listed: an image that was published later may not be among them. */
  readonly at: Date;
  /** The runtimes of this platform: images for others are not listed. */
  readonly runtimes: readonly string[];
}

/** Marks retired deployments whose image is gone. Returns the commit that serves if its image is gone as well, unless it is queued. */
export async function missingImages(
  tx: Tx,
  { id, org_id }: { readonly id: string; readonly org_id: string },
  { images, at, runtimes }: ListedImages,
): Promise<string | undefined> {
  const isGone = sql`d.org_id = ${org_id} and d.project_id = ${id} and d.image_ref <> all (${images}::text[]) and d.activated_at < ${at}
    and coalesce(d.image ->> 'runtime' = any (${runtimes}::text[]), true)`;
  await sql`update deployment d set image_pruned_at = now() where ${isGone} and status = 'retired' and image_pruned_at is null`.execute(
    tx,
  );
  const { rows } = await sql<{ commit: string }>`
    select d.commit from deployment d join project p on p.id = d.project_id join organization o on o.id = p.org_id
    where ${isGone} and d.status = 'active' and p.deleted_at is null and o.suspended_at is null
      and not exists (select from deployment c where c.project_id = d.project_id and c.status in ('pending', 'starting'))
      and not exists (select from build b where b.project_id = d.project_id
        and (b.status in ('queued', 'running') or b.requested_by = ${rebuilder} and b.commit = d.commit and b.created_at > now() - interval '1 hour'))`.execute(
    tx,
  );
  return rows[0]?.commit;
}

/** Who requests the builds of missing images. */
export const rebuilder = "Berth";

/** Lets images be built again at once although they were within the last hour: on a restored platform none is left. */
export async function forgetRebuilds(db: Db): Promise<void> {
  await db
    .updateTable("build")
    .set({ requested_by: `${rebuilder}, before a restore` })
    .where("requested_by", "=", rebuilder)
    .execute();
}

/** Allows the project's builds to start again. */
export async function endPruning(db: Db, wakeups: Wakeups, lease: Lease): Promise<void> {
  await db.deleteFrom("image_pruning").where(holds(lease)).execute();
  await wakeups.send(db, "builds", lease.id);
}

async function hasOpenBuild(tx: Tx, project: { id: string; org_id: string }): Promise<boolean> {
  const found = await tx
    .selectFrom("build")
    .select("id")
    .where(({ and }) => and({ org_id: project.org_id, project_id: project.id }))
    .where("status", "in", ["queued", "running"])
    .executeTakeFirst();
  return found !== undefined;
}

/** Returns which of these images are needed. Reads a few rows per image, not the project's whole history. */
async function neededImages(
  tx: Tx,
  { id, org_id }: { id: string; org_id: string },
  images: readonly string[],
): Promise<ReadonlySet<string>> {
  const ofProject = sql`d.org_id = ${org_id} and d.project_id = ${id}`;
  const { rows } = await sql<{ image_ref: string }>`
    select image_ref from deployment d where ${ofProject} and status = 'active'
    union
    select image_ref from deployment d where ${ofProject} and status in ('pending', 'starting')
    union
    select image_ref from (
      select i.image_ref, newest.number from unnest(${images}::text[]) as i (image_ref) cross join lateral (
        select number from deployment d where ${ofProject} and d.image_ref = i.image_ref and activated_at is not null and status <> 'active'
        order by number desc limit 1) newest
      order by newest.number desc limit ${sql.lit(keptGood)}) good`.execute(tx);
  return new Set(rows.map((row) => row.image_ref));
}

/** Claims the project; returns undefined while another process removes its images. */
async function claim(tx: Tx, project: { id: string; org_id: string }, owner: string): Promise<Lease | undefined> {
  const { rows } = await sql<{ id: string; fence: number }>`
    insert into image_pruning (id, org_id, project_id, lease_owner, lease_until)
    values (${newId("ipr")}, ${project.org_id}, ${project.id}, ${owner}, ${freshLease})
    on conflict (project_id) do update set lease_owner = excluded.lease_owner, lease_until = excluded.lease_until,
      fence = image_pruning.fence + 1
    where image_pruning.lease_until <= now()
    returning id, fence`.execute(tx);
  return rows[0] && { table: "image_pruning", owner, ...rows[0] };
}

async function markPruned(tx: Tx, project: { id: string; org_id: string }, images: readonly string[]): Promise<void> {
  await tx
    .updateTable("deployment")
    .set({ image_pruned_at: sql`now()` })
    .where(({ and }) => and({ org_id: project.org_id, project_id: project.id }))
    .where("image_ref", "in", [...images])
    .where("image_pruned_at", "is", null)
    .execute();
}
