import { sql } from "kysely";
import { newId } from "../../kit/ids.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { claimRow, holds, type InProgress, type Lease } from "../../store/leases.ts";
import type { ProjectKey } from "../projects/projects.ts";
import type { FollowRow } from "./queries.ts";

/** A branch of a followed repository that is due to be fetched for a preview, with its follow and project. */
export interface TakenPreviewFetch
  extends
    Columns<"preview_fetch", "id" | "org_id" | "follow_id" | "branch" | "failures" | "fence">,
    Pick<FollowRow, "project_id" | "url" | "provider" | "host_keys" | "host_key_pin" | "sealed_key" | "sealed_token"> {
  /** The database's time when it was claimed. */
  readonly began_at: string;
}

export function takePreviewFetch(
  db: Db,
  owner: string,
  inProgress: InProgress,
): Promise<TakenPreviewFetch | undefined> {
  return claimRow<TakenPreviewFetch>(db, {
    ...{ table: "preview_fetch", owner, inProgress, order: "next_fetch_at" },
    joins: sql`join project_follow f on f.id = q.follow_id join project p on p.id = f.project_id join organization o on o.id = q.org_id`,
    due: sql`q.next_fetch_at <= now() and p.deleted_at is null and o.suspended_at is null`,
    from: sql`join project_follow f on f.id = q.follow_id`,
    returning: sql`t.id, t.org_id, t.follow_id, t.branch, t.failures, t.fence, now() as began_at, f.project_id, f.url, f.provider,
      f.host_keys, f.host_key_pin, f.sealed_key, f.sealed_token`,
  });
}

/** Requests a fetch as soon as possible; one that is under way is followed by another. */
export async function requestPreviewFetch(
  tx: Tx,
  { org_id, follow_id, branch }: Columns<"preview_fetch", "org_id" | "follow_id" | "branch">,
): Promise<void> {
  await tx
    .insertInto("preview_fetch")
    .values({ id: newId("fpv"), org_id, follow_id, branch })
    .onConflict((on) =>
      on.columns(["follow_id", "branch"]).doUpdateSet({ next_fetch_at: sql`clock_timestamp()`, failures: 0 }),
    )
    .execute();
}

export async function countWaiting(db: Db, followId: string): Promise<number> {
  const query = db.selectFrom("preview_fetch").select((of) => of.fn.countAll<number>().as("count"));
  return Number((await query.where("follow_id", "=", followId).executeTakeFirstOrThrow()).count);
}

/** Ends a fetch, unless another was requested since it began; returns false when the lease was lost. */
export async function endPreviewFetch(tx: Tx, { began_at }: TakenPreviewFetch, lease: Lease): Promise<boolean> {
  const released = await tx
    .updateTable("preview_fetch")
    .set({ lease_until: null, lease_owner: null, failures: 0 })
    .where(holds(lease))
    .returning(sql<boolean>`next_fetch_at > ${began_at}::timestamptz`.as("again"))
    .executeTakeFirst();
  if (released?.again === false) await tx.deleteFrom("preview_fetch").where("id", "=", lease.id).execute();
  return released !== undefined;
}

export async function delayPreviewFetch(db: Db, lease: Lease, againMs: number): Promise<void> {
  await db
    .updateTable("preview_fetch")
    .set({
      ...{ lease_until: null, lease_owner: null, failures: sql`failures + 1` },
      next_fetch_at: sql`now() + make_interval(secs => ${againMs / 1000})`,
    })
    .where(holds(lease))
    .execute();
}

/** Returns the commit of a project's newest build. */
export async function newestBuilt(db: Db, { org_id, project_id }: ProjectKey): Promise<string | null> {
  const query = db
    .selectFrom("build")
    .select("commit")
    .where(({ and }) => and({ org_id, project_id }));
  return (await query.orderBy("number", "desc").limit(1).executeTakeFirst())?.commit ?? null;
}
