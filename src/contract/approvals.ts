import { z } from "zod";
import { id, idCursor, pageQuery, nextCursor, queryInteger, timestamp, row } from "./table.ts";
import { comparedLines } from "./deployments.ts";
import { limits } from "./limits.ts";
import { approvalStates, statesOf } from "./states.ts";

export const approval = z.object({
  id,
  status: z.enum(statesOf(approvalStates)),
  route: z.string(),
  method: z.string(),
  path: z.string(),
  target: z.string().nullable(),
  /** What is asked for, as an order: `Detach the domain shop.example.com`. */
  summary: z.string(),
  /** The slug of the project that it concerns; null when it concerns none. */
  project: z.string().nullable(),
  requested_by: z.object({ token_id: id, token_name: z.string() }),
  created_at: timestamp,
  /** When a pending or approved request expires. */
  expires_at: timestamp.nullable(),
  decided_at: timestamp.nullable(),
  consumed_at: timestamp.nullable(),
});

/** What a deploy that waits for a decision would bring, beside what serves; as its page shows it. */
const review = z.object({
  live: z.object({ number: z.number().int(), commit: z.string() }).nullable(),
  commit: z.string(),
  /** Of the preview in which it runs; null when it runs in none. */
  url: z.string().nullable(),
  /** How many commits only the deploy, and only what serves, has; null when they were not counted. */
  counts: z.object({ added: z.number().int(), removed: z.number().int() }).nullable(),
  /** At most 50 commits, 100 files and 64 KiB of lines. */
  ...comparedLines.shape,
  /** What its release command did to a copy of the data. */
  rehearsal: z.object({
    state: z.enum(["not_asked", "running", "passed", "failed", "skipped"]),
    /** The number of the deployment that has the whole report; null when there is none. */
    deployment: z.number().int().nullable(),
    reason: z.string().nullable(),
    /** At most 100. */
    lines: z.array(z.string()),
  }),
});
export type ApprovalReview = z.output<typeof review>;

export const rows = [
  row({
    name: "approvals.list",
    request: "GET /v1/approvals",
    may: "member approvals:read",
    within_projects: true,
    query: z.object({
      ...pageQuery(idCursor, limits.approvals_listed),
      status: z.enum(statesOf(approvalStates)).optional(),
    }),
    result: z.object({ approvals: z.array(approval), next_cursor: nextCursor }),
    summary: "List the organization's approval requests, newest first",
  }),
  row({
    name: "approvals.get",
    request: "GET /v1/approvals/:id",
    names: "approval",
    // A token that waits for an approval may read that approval, whatever its scopes.
    may: "member",
    within_projects: true,
    params: z.object({ id }),
    query: z.object({ wait: queryInteger(0, limits.approval_wait_seconds, 0) }),
    result: approval.extend({
      /** Only of an open request to deploy, to callers who may read the code, and without `wait`. */
      review: review.nullable(),
    }),
    summary:
      "Show one approval request; with ?wait=30, respond as soon as it is decided or expired, at the latest after 30 seconds",
  }),
  row({
    name: "approvals.withdraw",
    request: "DELETE /v1/approvals/:id",
    names: "approval",
    // Like reading it: the token that made the request, whatever its scopes.
    may: "member",
    within_projects: true,
    params: z.object({ id }),
    errors: ["forbidden", "conflict"],
    activity: "approval.withdrawn",
    summary: "Withdraw an open request of your own token; it expires",
  }),
] as const;
