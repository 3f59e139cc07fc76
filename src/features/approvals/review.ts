import { sql } from "kysely";
import type { ApprovalReview } from "../../contract/approvals.ts";
import { rehearsalLines, type Rehearsal } from "../../contract/rehearsal.ts";
import type { CommitCounts, Repositories } from "../../ports/repositories.ts";
import type { Db } from "../../store/database.ts";
import type { HandlerPlatform } from "../context.ts";
import { activeOf, compareIn } from "../deployments/deployments.ts";
import type { LinkedApproval } from "./queries.ts";
import { requestOf } from "./rules.ts";

/** What a deploy that waits for a decision would bring, beside what serves. */
export interface Review {
  readonly live: { readonly number: number; readonly commit: string } | null;
  readonly commit: string;
  /** Of the preview in which it runs. */
  readonly url: string | null;
  /** Null: not known. */
  readonly difference: Difference | null;
  /** The deployment of this commit that the dashboard can compare with the live one. */
  readonly number: number | null;
  /** Whether a rehearsal belongs to the request itself. */
  readonly isRehearsed: boolean;
  /** The newest one for this request; null: none was asked for. */
  readonly rehearsal: ReviewedRehearsal | null;
}

interface Difference {
  readonly counts: CommitCounts | null;
  readonly files: readonly string[];
  /** The repositories that have the two commits. */
  readonly place: string;
  readonly beside?: string | undefined;
}

export interface ReviewedRehearsal {
  readonly number: number | null;
  readonly status: Rehearsal["status"] | null;
  readonly reason: string | null;
  readonly report: Rehearsal["report"];
  /** Whether its build and deployment have ended. */
  readonly has_ended: boolean;
  /** Why there is no rehearsal although they have. */
  readonly problem: string | null;
}

const mostFiles = 200;

type Reviewed = Pick<LinkedApproval, "id" | "org_id" | "project_id" | "route" | "request">;

/** Returns what a person compares before they let a deploy go live; null for any other request. Changes nothing. */
export async function reviewOf(platform: HandlerPlatform, approval: Reviewed): Promise<Review | null> {
  const { org_id, project_id, route } = approval;
  const { commit, url, deployment } = requestOf(approval).detail;
  const isPromotion = route === "previews.promote";
  if (project_id === null || typeof commit !== "string" || !(isPromotion || route === "deployments.create"))
    return null;
  const rehearsal = isPromotion ? await rehearsalFor(platform.db, approval) : null;
  const live = (await activeOf(platform.db, org_id, project_id)) ?? null;
  const places = [project_id, ...(await previewsWith(platform.db, { org_id, project_id, commit }))];
  return {
    ...{ live, commit, rehearsal, isRehearsed: !isPromotion },
    url: typeof url === "string" ? url : null,
    difference: live && (await differenceIn(platform.ports.repositories, places, { from: live.commit, to: commit })),
    number: isPromotion ? (rehearsal?.number ?? null) : typeof deployment === "number" ? deployment : null,
  };
}

/** Returns the same with the lines that differ, for those who don't see the page. */
export async function reviewLines(platform: HandlerPlatform, approval: Reviewed): Promise<ApprovalReview | null> {
  const review = await reviewOf(platform, approval);
  if (review === null) return null;
  const { live, commit, url, difference } = review;
  const { repositories } = platform.ports;
  const compared =
    live === null || difference === null
      ? null
      : await compareIn(
          repositories,
          difference.place,
          { from: live.commit, to: commit, beside: difference.beside },
          mostCompared,
        );
  return {
    ...{ live, commit, url, counts: difference?.counts ?? null },
    ...(compared ?? { commits: [], files: null, complete: true }),
    rehearsal: rehearsalOf(review, requestOf(approval).detail["rehearsal"]),
  };
}

function rehearsalOf({ isRehearsed, number, rehearsal }: Review, lines: unknown): ApprovalReview["rehearsal"] {
  const none = { deployment: null, reason: null, lines: [] };
  if (isRehearsed)
    return { ...none, state: "passed", deployment: number, lines: Array.isArray(lines) ? lines.map(String) : [] };
  if (rehearsal === null) return { ...none, state: "not_asked" };
  const { status, reason, report, has_ended, problem } = rehearsal;
  if (!has_ended) return { ...none, state: "running", deployment: number };
  const shown = report === null ? [] : rehearsalLines(report).slice(0, mostLines);
  const ended = { deployment: number, lines: shown };
  if (status === "passed" || status === "failed") return { ...ended, state: status, reason };
  return { ...ended, state: "skipped", reason: reason ?? problem ?? "Something newer took its place." };
}

const mostLines = 100;

/** Less than a comparison of two deployments: any token of the organization may ask for it, any number of times at once. */
const mostCompared = { commits: 50, files: 100, fileBytes: 16 * 1024, bytes: 64 * 1024, timeoutMs: 5000 };

async function rehearsalFor(db: Db, { org_id, id }: Reviewed): Promise<ReviewedRehearsal | null> {
  const { rows } = await sql<ReviewedRehearsal>`
    select d.number, r.status, r.reason, r.report, coalesce(d.failure, b.failure) ->> 'summary' as problem,
      b.status not in ('queued', 'running') and coalesce(d.status, 'superseded') not in ('pending', 'starting') as has_ended
    from build b left join deployment d on d.build_id = b.id and d.rehearse_only left join rehearsal r on r.deployment_id = d.id
    where b.org_id = ${org_id} and b.approval_id = ${id} order by b.number desc limit 1`.execute(db);
  return rows[0] ?? null;
}

/** The repository of a preview that deployed this commit: the project's own may lack it. */
async function previewsWith(
  db: Db,
  { org_id, project_id, commit }: { readonly org_id: string; readonly project_id: string; readonly commit: string },
): Promise<readonly string[]> {
  const { rows } = await sql<{ id: string }>`
    select p.id from project p join deployment d on d.project_id = p.id and d.commit = ${commit}
    where p.org_id = ${org_id} and p.preview_of = ${project_id} and p.purged_at is null limit 1`.execute(db);
  return rows.map(({ id }) => id);
}

async function differenceIn(
  repositories: Pick<Repositories, "changedPaths" | "countCommits" | "exists">,
  places: readonly string[],
  { from, to }: { readonly from: string; readonly to: string },
): Promise<Review["difference"]> {
  const found = await Promise.all(places.map(async (id) => ((await repositories.exists(id)) ? [id] : [])));
  const [place, beside] = found.flat();
  if (place === undefined) return null;
  const change = (a: string, b: string) => ({ from: a, to: b, quarantine: null, beside });
  // Comparing a commit with itself tells whether it is stored; git would refuse to compare with one that is not.
  const stored = [from, to].map((each) => repositories.changedPaths(place, change(each, each), 1));
  if ((await Promise.all(stored)).includes(null)) return null;
  const files = from === to ? [] : await repositories.changedPaths(place, change(from, to), mostFiles);
  if (files === null) return null;
  return { place, beside, files, counts: await repositories.countCommits(place, change(from, to)) };
}
