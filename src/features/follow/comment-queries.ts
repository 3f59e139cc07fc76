import { sql } from "kysely";
import type { FollowProvider } from "../../contract/follow.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { nextRow, type InProgress } from "../../store/leases.ts";
import type { ProjectKey } from "../projects/projects.ts";
import type { CommentFacts, PullRequest } from "./comment-rules.ts";

type Comment = Columns<"preview_comment", "project_id" | "follow_id" | "request" | "comment_id" | "failures">;

type Facts = Omit<CommentFacts, "url" | "page"> & { readonly slug: string; readonly hostname: string };

export interface DueComment extends Comment, Columns<"project_follow", "org_id" | "url"> {
  readonly provider: FollowProvider;
  readonly sealed_token: Buffer;
  /** When the preview was created. */
  readonly since: string;
  /** What the comment is to say, in short. */
  readonly says: string;
  readonly facts: Facts;
}

/** Asks for the comment about a preview, or for a look at whether it still says what is true. */
export async function queueComment(
  tx: Tx,
  comment: Columns<"preview_comment", "project_id" | "org_id" | "follow_id">,
): Promise<void> {
  const again = { follow_id: comment.follow_id, failures: 0, problem: null, next_attempt_at: sql<string>`now()` };
  await tx
    .insertInto("preview_comment")
    .values(comment)
    .onConflict((on) => on.column("project_id").doUpdateSet(again))
    .execute();
}

/** Looks again for the pull requests of a repository's previews that had none, as one may have been opened. */
export async function wakeComments(db: Db, followId: string): Promise<void> {
  await db
    .updateTable("preview_comment")
    .set({ failures: 0, next_attempt_at: sql`now()` })
    .where(({ and }) => and({ follow_id: followId }))
    .where("request", "is", null)
    .execute();
}

/** The preview `p` of the project `o`, its newest build, and the newest rehearsal of that build's commit. */
const joined = sql`join project o on o.id = p.preview_of
  left join lateral (select id, commit, status from build where project_id = p.id and org_id = p.org_id
    order by number desc limit 1) b on true
  left join lateral (select status from deployment where build_id = b.id and org_id = p.org_id order by number limit 1) d on true
  left join lateral (select r.status from build rb join deployment rd on rd.build_id = rb.id join rehearsal r on r.deployment_id = rd.id
    where rb.org_id = o.org_id and rb.project_id = o.id and rb.rehearse_only and rb.commit = b.commit
    order by rb.number desc limit 1) r on true`;

const state = sql`case when p.deleted_at is not null then 'removed' when b.id is null then 'waiting'
  when b.status in ('queued', 'running') then 'pending'
  when b.status = 'succeeded' and coalesce(d.status, 'pending') in ('pending', 'starting') then 'pending'
  when b.status = 'succeeded' and d.status in ('active', 'retired') then 'success' else 'failure' end`;

const says = sql`concat_ws(' ', ${state}, b.commit, p.preview_expires_at, r.status)`;

const facts = sql`json_build_object('id', p.id, 'of', o.slug, 'slug', p.slug, 'branch', p.git_branch, 'hostname', p.hostname,
  'commit', b.commit, 'state', ${state}, 'expires_at', p.preview_expires_at, 'rehearsal', r.status)`;

/**
 * Claims a comment that does not say what is true; returns undefined when there is none. What is in progress are the follows whose hosts
 * are being asked. The row has no lease: the claim lasts for `holdSeconds`, and a comment that was posted by who then died is found again.
 */
export async function takeComment(
  db: Db,
  holdSeconds: number,
  inProgress: InProgress,
): Promise<DueComment | undefined> {
  const chosen = nextRow({
    ...{ table: "preview_comment", inProgress, order: "next_attempt_at", id: "f.id", organization: "f.org_id" },
    joins: sql`join project_follow f on f.id = q.follow_id and f.sealed_token is not null and f.provider <> 'other'
      join project p on p.id = q.project_id ${joined}`,
    due: sql`q.next_attempt_at <= now() and q.shown is distinct from ${says}`,
    free: sql`true`,
  });
  const { rows } = await sql<DueComment>`
    with q as (${chosen})
    update preview_comment t set next_attempt_at = now() + make_interval(secs => ${holdSeconds})
    from q join project_follow f on f.id = q.follow_id join project p on p.id = q.project_id ${joined}
    where t.project_id = q.project_id
    returning t.project_id, t.follow_id, t.request, t.comment_id, t.failures, f.org_id, f.url, f.provider, f.sealed_token,
      p.created_at as since, ${says} as says, ${facts} as facts`.execute(db);
  return rows[0];
}

/** What became of an attempt; `againMs` null: no further one until something else happens. */
export interface CommentEnd {
  readonly request?: PullRequest;
  readonly comment_id?: string;
  readonly shown?: string;
  readonly problem: string | null;
  readonly failures: number;
  readonly againMs: number | null;
}

// Unlike infinity, clients can read it.
const never = sql`interval '100 years'`;

/** Records an attempt. The comment about a removed preview is the last one. */
export async function endComment(
  db: Db,
  { project_id, facts: { state: now } }: DueComment,
  end: CommentEnd,
): Promise<void> {
  const { request, againMs, ...rest } = end;
  if (now === "removed" && (end.shown !== undefined || againMs === null)) {
    await db.deleteFrom("preview_comment").where("project_id", "=", project_id).execute();
    return;
  }
  await db
    .updateTable("preview_comment")
    .set({
      ...rest,
      ...(request && { request: request.number, request_url: request.url }),
      next_attempt_at:
        againMs === null
          ? sql<string>`now() + ${never}`
          : sql<string>`now() + make_interval(secs => ${againMs / 1000})`,
    })
    .where("project_id", "=", project_id)
    .execute();
}

/** Returns what a comment about a preview says now, and what became of it at the host; undefined when there is no such preview. */
export async function commentOf(db: Db | Tx, { org_id, project_id }: ProjectKey) {
  const { rows } = await sql<
    { facts: Facts } & Columns<"preview_comment", "request" | "request_url" | "comment_id" | "problem">
  >`
    select ${facts} as facts, c.request, c.request_url, c.comment_id, c.problem
    from project p ${joined} left join preview_comment c on c.project_id = p.id
    where p.org_id = ${org_id} and p.id = ${project_id}`.execute(db);
  return rows[0];
}

/** Deletes the rows of previews that are gone and whose comment cannot say so. */
export async function deleteComments(db: Db): Promise<void> {
  await sql`delete from preview_comment c using project p where p.id = c.project_id and p.purged_at is not null
    and (c.comment_id is null or c.next_attempt_at > now() + interval '1 year')`.execute(db);
}
