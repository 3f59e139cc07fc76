import type { Page } from "../../kit/page.ts";
import { sql, type Selectable } from "kysely";
import { limits } from "../../contract/limits.ts";
import type { FollowProvider } from "../../contract/follow.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { claimRow, holds, nextRow, type InProgress, type Lease } from "../../store/leases.ts";
import { provenNow } from "../../store/proven-time.ts";
import type { Tables } from "../../store/tables.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { planEvent } from "./rules.ts";

export type FollowRow = Selectable<Tables["project_follow"]>;

export async function selectFollow(db: Db | Tx, { org_id, project_id }: ProjectKey): Promise<FollowRow | undefined> {
  const query = db.selectFrom("project_follow").selectAll().where("org_id", "=", org_id);
  return query.where("project_id", "=", project_id).executeTakeFirst();
}

export interface NewFollow
  extends
    ProjectKey,
    Columns<"project_follow", "id" | "url" | "branch" | "public_key" | "sealed_key" | "sealed_secret"> {
  readonly provider: FollowProvider;
}

export async function insertFollow(tx: Tx, follow: NewFollow): Promise<FollowRow> {
  return tx.insertInto("project_follow").values(follow).returningAll().executeTakeFirstOrThrow();
}

interface FollowChange {
  readonly branch: string;
  readonly provider: FollowProvider;
  readonly sealed_token?: Buffer | null;
  readonly host_key_pin?: string | null;
  readonly host_keys?: string | null;
}

/** Updates a follow. A new branch is fetched at once, whatever was fetched before. */
export async function updateFollow(tx: Tx, id: string, change: FollowChange): Promise<FollowRow> {
  const isSame = sql<boolean>`branch = ${change.branch}`;
  return tx
    .updateTable("project_follow")
    .set({
      ...change,
      commit: sql`case when ${isSame} then commit end`,
      problem: null,
      failures: 0,
      next_fetch_at: sql`now()`,
      updated_at: sql`now()`,
    })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Deletes the follow; returns its address, or undefined when there was none. */
export async function deleteFollow(tx: Tx, { org_id, project_id }: ProjectKey) {
  const query = tx.deleteFrom("project_follow").where("org_id", "=", org_id).where("project_id", "=", project_id);
  return query.returning(["id", "url", "branch"]).executeTakeFirst();
}

/** Returns what a delivery is checked against. Only for a living project of an organization that is not suspended. */
export async function selectHook(db: Db, id: string) {
  return db
    .selectFrom("project_follow")
    .innerJoin("project", "project.id", "project_follow.project_id")
    .innerJoin("organization", "organization.id", "project_follow.org_id")
    .select(["project_follow.id", "project_follow.org_id", "project_follow.branch", "project_follow.sealed_secret"])
    .select(["project.previews", "project.deploy_branch"])
    .where("project_follow.id", "=", id)
    .where("project.deleted_at", "is", null)
    .where("organization.suspended_at", "is", null)
    .executeTakeFirst();
}

export interface NewDelivery extends Columns<
  "follow_delivery",
  "id" | "org_id" | "follow_id" | "source" | "event" | "signed"
> {
  readonly status: "waiting" | "ignored";
  readonly reason?: string | null;
  readonly commit?: string | null;
  /** Of a preview; null: the followed one. */
  readonly branch?: string | null;
}

export async function insertDelivery(tx: Tx | Db, delivery: NewDelivery): Promise<void> {
  const finished = delivery.status === "waiting" ? {} : { finished_at: sql<string>`now()` };
  await tx
    .insertInto("follow_delivery")
    .values({ ...delivery, ...finished })
    .execute();
}

/** Lets waiting fetches for a plan deploy, too. */
export async function deployWaiting(tx: Tx, followId: string): Promise<void> {
  const waiting = { follow_id: followId, status: "waiting", event: planEvent } as const;
  await tx
    .updateTable("follow_delivery")
    .set({ event: "fetch" })
    .where(({ and }) => and(waiting))
    .execute();
}

const mostForged = 50;
const mostKept = 1000;

/** Keeps the newest deliveries, and only a few of the unsigned ones, which anybody can send. */
export async function trimDeliveries(db: Db | Tx, followId: string): Promise<void> {
  await sql`delete from follow_delivery where id in (
    select id from (select id, signed, row_number() over (partition by signed order by id desc) as place
      from follow_delivery where follow_id = ${followId} and status <> 'waiting') d
    where place > case when signed then ${sql.lit(mostKept)} else ${sql.lit(mostForged)} end)`.execute(db);
}

/** Requests a fetch as soon as possible. When a person asks, clears the last problem, because the person waits for the result of the new fetch. */
export async function requestFetch(tx: Tx | Db, id: string, by: "hook" | "person"): Promise<void> {
  await tx
    .updateTable("project_follow")
    .set({ next_fetch_at: sql`now()`, ...(by === "person" ? { problem: null } : {}) })
    .where("id", "=", id)
    .execute();
}

/** Returns how many fetches were requested manually in the last minute. */
export async function countManual(tx: Tx, followId: string): Promise<number> {
  const query = tx.selectFrom("follow_delivery").select((of) => of.fn.countAll<number>().as("count"));
  const recent = query
    .where(({ and }) => and({ follow_id: followId, source: "manual" }))
    .where("received_at", ">", sql<string>`now() - interval '1 minute'`);
  return Number((await recent.executeTakeFirstOrThrow()).count);
}

/** Returns deliveries with their results, newest first, one more than a page shows. */
export async function listDeliveries(db: Db | Tx, followId: string, { cursor, limit }: Page<string>) {
  let query = db
    .selectFrom("follow_delivery as d")
    .leftJoin("build as b", "b.id", "d.build_id")
    .leftJoin("deployment as p", (on) => on.onRef("p.build_id", "=", "b.id").on("p.trigger", "=", "follow"))
    .select([
      "d.id",
      "d.source",
      "d.event",
      "d.branch",
      "d.status",
      "d.reason",
      "d.commit",
      "d.received_at",
      "d.finished_at",
    ])
    .select(["b.id as build_id", "b.number as build_number", "b.status as build_status"])
    .select(["p.number as deployment_number", "p.status as deployment_status"])
    .where("d.follow_id", "=", followId);
  if (cursor !== undefined) query = query.where("d.id", "<", cursor);
  return query
    .orderBy("d.id", "desc")
    .limit(limit + 1)
    .execute();
}

export type DeliveryRow = Awaited<ReturnType<typeof listDeliveries>>[number];

export async function selectDelivery(db: Db | Tx, followId: string, id: string): Promise<DeliveryRow> {
  const rows = await listDeliveries(db, followId, { limit: limits.follow_deliveries_listed });
  const found = rows.find((row) => row.id === id);
  if (found === undefined) throw new Error("the delivery is gone");
  return found;
}

/** A claimed follow whose branch is due, with its project. */
export interface TakenFollow extends FollowRow {
  /** The database's time when it was claimed. */
  readonly began_at: string;
  readonly slug: string;
  readonly deploy_branch: string | null;
  readonly root: string | null;
  readonly watch: string[] | null;
}

/**
 * Claims the follow that has been due longest. The branch is not fetched while a build or deployment of its project is in progress: pushes
 * in that time become one fetch, and each build starts where the previous one left the branch.
 */
export function takeFollow(db: Db, owner: string, inProgress: InProgress): Promise<TakenFollow | undefined> {
  return claimRow<TakenFollow>(db, {
    ...{ table: "project_follow", owner, inProgress, order: "next_fetch_at" },
    joins: sql`join project p on p.id = q.project_id join organization o on o.id = q.org_id`,
    due: sql`q.next_fetch_at <= now() and p.deleted_at is null and o.suspended_at is null
      and not exists (select 1 from build b where b.project_id = q.project_id and b.status in ('queued', 'running'))
      and not exists (select 1 from deployment d where d.project_id = q.project_id and d.status in ('pending', 'starting'))`,
    from: sql`join project p on p.id = q.project_id`,
    returning: sql`t.*, now() as began_at, p.slug, p.deploy_branch, p.root, p.watch`,
  });
}

/** Returns the deliveries that a fetch of the followed branch, or of a preview's, handles if it starts now; newest first. */
export async function waitingDeliveries(db: Db, followId: string, branch: string | null = null) {
  return db
    .selectFrom("follow_delivery")
    .select(["id", "source", "event", "commit"])
    .where(({ and }) => and({ follow_id: followId, status: "waiting" }))
    .where("branch", branch === null ? "is" : "=", branch)
    .orderBy("id", "desc")
    .execute();
}

export interface FetchEnd {
  readonly commit?: string;
  readonly host_keys?: string | null;
  readonly problem: string | null;
  /** When to fetch the branch again, unless another fetch was requested since this one started. */
  readonly againMs: number;
}

/** Ends a fetch if the lease still holds; returns false when it doesn't. */
export async function endFetch(
  tx: Tx,
  { began_at, host_key_pin }: Pick<TakenFollow, "began_at" | "host_key_pin">,
  lease: Lease,
  { commit, host_keys, problem, againMs }: FetchEnd,
): Promise<boolean> {
  const next = sql<string>`now() + make_interval(secs => ${againMs / 1000})`;
  // Another fetch was requested since this one started, perhaps with other settings; its result counts instead.
  const isOld = sql<boolean>`next_fetch_at > ${began_at}::timestamptz`;
  const done = await tx
    .updateTable("project_follow")
    .set({
      ...(commit === undefined ? {} : { commit, fetched_at: sql`now()` }),
      // The host key may have been changed since the fetch started.
      ...(host_keys === undefined
        ? {}
        : {
            host_keys: sql<
              string | null
            >`case when host_key_pin is not distinct from ${host_key_pin} then ${host_keys} else host_keys end`,
          }),
      problem: problem === null ? null : sql<string | null>`case when ${isOld} then problem else ${problem} end`,
      failures: problem === null ? 0 : sql`failures + 1`,
      next_fetch_at: sql<string>`case when ${isOld} then next_fetch_at else ${next} end`,
      lease_until: null,
      lease_owner: null,
    })
    .where(holds(lease))
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

export interface DeliveryEnd {
  readonly status: "deployed" | "ignored";
  readonly reason: string | null;
  readonly commit: string | null;
  readonly build_id: string | null;
}

export async function endDeliveries(tx: Tx, ids: readonly string[], end: DeliveryEnd): Promise<void> {
  await tx
    .updateTable("follow_delivery")
    .set({ ...end, finished_at: sql`now()` })
    .where("id", "in", ids.length === 0 ? [""] : ids)
    .execute();
}

/** Returns how long until the next follow is due, in milliseconds; undefined when nothing is followed. */
export async function nextFetchMs(db: Db): Promise<number | undefined> {
  const row = await db
    .selectFrom("project_follow")
    .innerJoin("project", "project.id", "project_follow.project_id")
    .select(sql<number | null>`extract(epoch from min(next_fetch_at) - now()) * 1000`.as("wait"))
    .where("project.deleted_at", "is", null)
    .executeTakeFirst();
  const wait = row?.wait ?? null;
  return wait === null ? undefined : Math.max(0, Number(wait));
}

/** Deletes one batch of deliveries older than 14 days. */
export async function deleteOldFollowDeliveries(db: Db): Promise<void> {
  await sql`delete from follow_delivery where id in (
    select id from follow_delivery where received_at < ${provenNow} - interval '14 days' order by received_at limit 500)`.execute(
    db,
  );
}

/** Queues a commit status, which reports a build's state to the repository's host. */
export async function queueCommitStatus(tx: Tx, status: { build_id: string; follow_id: string }): Promise<void> {
  await tx.insertInto("commit_status").values(status).execute();
}

export interface DueStatus
  extends Columns<"commit_status", "build_id" | "follow_id" | "failures">, Columns<"project_follow", "org_id" | "url"> {
  readonly state: "pending" | "success" | "failure";
  /** What the host shows the state of: the project, or its previews. */
  readonly context: string;
  /** Of a preview; null for others. */
  readonly hostname: string | null;
  readonly number: number;
  readonly commit: string;
  readonly deployment: number | null;
  readonly slug: string;
  readonly provider: FollowProvider;
  readonly sealed_token: Buffer;
}

const stateOfBuild = sql`case
  when b.status in ('queued', 'running') then 'pending'
  when b.status = 'succeeded' and coalesce(d.status, 'pending') in ('pending', 'starting') then 'pending'
  when b.status = 'succeeded' and d.status in ('active', 'retired') then 'success'
  else 'failure' end`;

/**
 * Claims a build whose state has not been reported yet; returns undefined when there is none. What is in progress are the follows whose
 * states are being reported. The row has no lease, because a state that is reported twice does no harm: the claim lasts for `holdSeconds`.
 */
export async function takeStatus(db: Db, holdSeconds: number, inProgress: InProgress): Promise<DueStatus | undefined> {
  const chosen = nextRow({
    ...{ table: "commit_status", inProgress, order: "next_attempt_at", id: "f.id", organization: "f.org_id" },
    joins: sql`join project_follow f on f.id = q.follow_id and f.sealed_token is not null
      join build b on b.id = q.build_id left join deployment d on d.build_id = b.id and d.trigger = 'follow'`,
    due: sql`q.next_attempt_at <= now() and q.shown is distinct from ${stateOfBuild}`,
    free: sql`true`,
  });
  const { rows } = await sql<DueStatus>`
    with q as (${chosen})
    update commit_status t set next_attempt_at = now() + make_interval(secs => ${holdSeconds})
    from q join build b on b.id = q.build_id join project p on p.id = b.project_id join project_follow f on f.id = q.follow_id
      left join project o on o.id = p.preview_of
      left join deployment d on d.build_id = b.id and d.trigger = 'follow'
    where t.build_id = q.build_id
    returning t.build_id, t.follow_id, t.failures, ${stateOfBuild} as state, b.number,
      case when o.id is null then p.slug else o.slug || '/preview' end as context, case when o.id is null then null else p.hostname end as hostname, b.commit, d.number as deployment, p.slug,
      f.org_id, f.url, f.provider, f.sealed_token`.execute(db);
  return rows[0];
}

/** Records a reported state; a final state is not reported again. */
export async function markShown(tx: Tx, { build_id, follow_id, state }: DueStatus): Promise<void> {
  if (state === "pending")
    await tx
      .updateTable("commit_status")
      .set({ shown: state, failures: 0, next_attempt_at: sql`now()` })
      .where("build_id", "=", build_id)
      .execute();
  else await tx.deleteFrom("commit_status").where("build_id", "=", build_id).execute();
  await tx.updateTable("project_follow").set({ status_problem: null }).where("id", "=", follow_id).execute();
}

/** Records a failure to report a state. `againMs` null: no retry. */
export async function markNotShown(tx: Tx, status: DueStatus, problem: string, againMs: number | null): Promise<void> {
  const { build_id, follow_id } = status;
  if (againMs === null) await tx.deleteFrom("commit_status").where("build_id", "=", build_id).execute();
  else
    await tx
      .updateTable("commit_status")
      .set({ failures: sql`failures + 1`, next_attempt_at: sql`now() + make_interval(secs => ${againMs / 1000})` })
      .where("build_id", "=", build_id)
      .execute();
  await tx.updateTable("project_follow").set({ status_problem: problem }).where("id", "=", follow_id).execute();
}
