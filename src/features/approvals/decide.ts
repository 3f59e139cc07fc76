import type { Db } from "../../store/database.ts";
import { recordActivity } from "../activity/activity.ts";
import type { HandlerPlatform } from "../context.ts";
import { decideApproval, selectByLink, type LinkedApproval } from "./queries.ts";
import { durations, linkHashOf } from "./rules.ts";

export type Decided =
  | { readonly outcome: "decided" }
  | { readonly outcome: "too_late" }
  | { readonly outcome: "unknown" };

/** Approves or denies the request of a decision link; works once per link. */
export async function decide(platform: HandlerPlatform, link: string, choice: "approved" | "denied"): Promise<Decided> {
  const now = platform.clock.now();
  const found = await openDecision(platform.db, link, now);
  if (found === undefined) return { outcome: "unknown" };
  if (!found.isOpen) return { outcome: "too_late" };
  const { id, org_id, project_id, target, route } = found.approval;
  return platform.db.transaction().execute(async (tx): Promise<Decided> => {
    const expires_at = choice === "approved" ? new Date(now.getTime() + durations.approvedMs) : now;
    if (!(await decideApproval(tx, id, { status: choice, now, expires_at }))) return { outcome: "too_late" };
    await recordActivity(tx, {
      org_id,
      project_id,
      actor_token_id: null,
      actor_name: "decision page",
      action: `approval.${choice}`,
      target,
      detail: { approval_id: id, route },
    });
    await platform.wakeups.send(tx, "approvals", id);
    return { outcome: "decided" };
  });
}

/** A request as the decision page shows it. */
export interface Decision {
  readonly approval: LinkedApproval;
  /** Whether it can still be decided. */
  readonly isOpen: boolean;
  /** What the route does, the request's body, and the handler's note. */
  readonly request: {
    readonly summary: string;
    readonly body: string | null;
    readonly detail: Readonly<Record<string, unknown>>;
  };
}

/** Returns the request that a decision link leads to; undefined for an unknown link. Read-only. */
export async function openDecision(db: Db, link: string, now: Date): Promise<Decision | undefined> {
  const hash = linkHashOf(link);
  const approval = hash === undefined ? undefined : await selectByLink(db, hash, now);
  if (approval === undefined) return undefined;
  const isOpen = approval.status === "pending" && approval.token_lives && approval.suspended_at === null;
  return { approval, isOpen, request: approval.request as Decision["request"] };
}
