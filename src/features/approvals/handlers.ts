import { pageOf } from "../../kit/page.ts";
import type { Result } from "../../contract/routes.ts";
import { createSignal } from "../../store/signal.ts";
import type { Context, Handlers } from "../context.ts";
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
    if (seen.status !== "pending" || query.wait === 0) return present(seen);
    await untilDecided(ctx, params.id, query.wait * 1000);
    return present(await look());
  },
};

type GetContext = Context<"approvals.get">;

function lookUp({ platform, caller }: GetContext, id: string): Promise<ApprovalRow | undefined> {
  return selectApproval(platform.db, { org_id: caller.org_id, id }, platform.clock.now());
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

function present(row: ApprovalRow): Result<"approvals.get"> {
  const { token_id, token_name, project_id: __, request: _, ...rest } = row;
  const isOpen = row.status === "pending" || row.status === "approved";
  const requested_by = { token_id, token_name };
  return { ...rest, summary: summaryOf(row), expires_at: isOpen ? row.expires_at : null, requested_by };
}
