import { pageOf } from "../../kit/page.ts";
import type { Result } from "../../contract/routes.ts";
import { createSignal } from "../../store/signal.ts";
import type { Context, Handlers } from "../context.ts";
import { withdrawApproval } from "./approvals.ts";
import { reviewLines } from "./review.ts";
import { summaryOf } from "./rules.ts";
import { listApprovals, selectApproval, type ApprovalRow } from "./queries.ts";

export const approvals: Handlers<"approvals"> = {
  async list(ctx, { query }) {
    const rows = await listApprovals(ctx.tx, ctx.caller, { ...query, now: ctx.now });
    const { shown, next_cursor } = pageOf(rows, query.limit, ({ id }) => id);
    return { approvals: shown.map(present), next_cursor };
  },

  async get(ctx, { params, query }) {
    const look = async () => (await lookUp(ctx, params.id)) ?? ctx.fail("not_found");
    const seen = await look();
    if (query.wait === 0) return { ...present(seen), review: await reviewFor(ctx, seen) };
    if (seen.status === "pending") await untilDecided(ctx, params.id, query.wait * 1000);
    return { ...present(await look()), review: null };
  },

  async withdraw(ctx, { params: { id } }) {
    const { org_id, token_id } = ctx.caller;
    const asked = await selectApproval(ctx.tx, { org_id, id }, ctx.now);
    if (asked === undefined) return ctx.fail("not_found");
    if (asked.token_id !== token_id)
      return ctx.fail("forbidden", {
        error: "Only the token that made a request withdraws it.",
        hint: "An owner denies it on its page: Approvals in the dashboard.",
      });
    if (!(await withdrawApproval(ctx.tx, ctx.platform.wakeups, { org_id, token_id, id })))
      return ctx.fail("conflict", { error: `The request is ${asked.status}, so it can no longer be withdrawn.` });
    const detail = { approval_id: id, route: asked.route, request: summaryOf(asked) };
    ctx.note({ target: id, detail, ...(asked.project_id !== null && { project_id: asked.project_id }) });
    return undefined;
  },
};

type GetContext = Context<"approvals.get">;

function lookUp({ platform, caller }: GetContext, id: string): Promise<ApprovalRow | undefined> {
  return selectApproval(platform.db, { org_id: caller.org_id, id }, platform.clock.now());
}

async function reviewFor({ platform, caller: { org_id, scopes, project_ids } }: GetContext, row: ApprovalRow) {
  // A token follows its own requests, also those about projects that it reaches no longer.
  if (project_ids?.includes(row.project_id ?? "") === false) return null;
  const isOpen = row.status === "pending" || row.status === "approved";
  const mayRead = scopes.includes("projects:read") && scopes.includes("deployments:read");
  return isOpen && mayRead ? reviewLines(platform, { ...row, org_id }) : null;
}

// A wake-up may be lost, so poll as well.
const pollEveryMs = 5000;

/** Waits until the request is no longer pending or the time is over. Holds no transaction or connection meanwhile. */
async function untilDecided(ctx: GetContext, id: string, waitMs: number): Promise<void> {
  const endMs = performance.now() + waitMs;
  const wakeup = createSignal(ctx.platform.wakeups, ["approvals"], id);
  try {
    for (let leftMs = waitMs; leftMs > 0; leftMs = endMs - performance.now()) {
      if ((await lookUp(ctx, id))?.status !== "pending") return;
      await wakeup.wait(Math.min(leftMs, pollEveryMs), ctx.signal);
      ctx.signal.throwIfAborted();
    }
  } finally {
    wakeup.stop();
  }
}

function present(row: ApprovalRow): Result<"approvals.list">["approvals"][number] {
  const { token_id, token_name, project_id: __, request: _, ...rest } = row;
  const isOpen = row.status === "pending" || row.status === "approved";
  const requested_by = { token_id, token_name };
  return { ...rest, summary: summaryOf(row), expires_at: isOpen ? row.expires_at : null, requested_by };
}
