import type { Db } from "../../store/database.ts";
import { recordActivity } from "../activity/activity.ts";
import type { Caller, HandlerPlatform } from "../context.ts";
import { decideApproval, selectToDecide, type LinkedApproval } from "./queries.ts";
import { durations, linkHashOf, requestOf, summaryOf, type StoredRequest } from "./rules.ts";

/** The person who decides: the holder of the link that was sent, or an owner who is signed in. */
export type Decider =
  | { readonly link: string }
  | { readonly id: string; readonly caller: Pick<Caller, "org_id" | "project_ids" | "token_id" | "token_name"> };

export type Decided =
  | { readonly outcome: "decided" }
  | { readonly outcome: "too_late" }
  | { readonly outcome: "unknown" };

/** Approves or denies a request; works once per request. */
export async function decide(
  platform: HandlerPlatform,
  decider: Decider,
  choice: "approved" | "denied",
  means: "link" | "token" | "passkey" | "fresh sign-in",
): Promise<Decided> {
  const now = platform.clock.now();
  const found = await openDecision(platform.db, decider, now);
  if (found === undefined) return { outcome: "unknown" };
  if (!found.isOpen) return { outcome: "too_late" };
  const { id, org_id, project_id, target, route } = found.approval;
  const actor =
    "link" in decider
      ? { actor_token_id: null, actor_name: "decision page" }
      : { actor_token_id: decider.caller.token_id, actor_name: decider.caller.token_name };
  return platform.db.transaction().execute(async (tx): Promise<Decided> => {
    const expires_at = choice === "approved" ? new Date(now.getTime() + durations.approvedMs) : now;
    if (!(await decideApproval(tx, id, { status: choice, now, expires_at }))) return { outcome: "too_late" };
    const detail = { approval_id: id, route, request: found.summary, means };
    await recordActivity(tx, { org_id, project_id, ...actor, action: `approval.${choice}`, target, detail });
    await platform.wakeups.send(tx, "approvals", id);
    return { outcome: "decided" };
  });
}

export interface Decision {
  readonly approval: LinkedApproval;
  /** Whether it can still be decided. */
  readonly isOpen: boolean;
  /** What is asked for, as an order. */
  readonly summary: string;
  /** The request's body, and the handler's note. */
  readonly request: StoredRequest;
}

/** Returns the request that a person wants to decide; undefined for an unknown link or id. Read-only. */
export async function openDecision(db: Db, decider: Decider, now: Date): Promise<Decision | undefined> {
  const approval = await lookUp(db, decider, now);
  if (approval === undefined) return undefined;
  const isOpen = approval.status === "pending" && approval.token_lives && approval.suspended_at === null;
  return { approval, isOpen, summary: summaryOf(approval), request: requestOf(approval) };
}

async function lookUp(db: Db, decider: Decider, now: Date): Promise<LinkedApproval | undefined> {
  if ("caller" in decider) {
    const { org_id, project_ids } = decider.caller;
    if (!/^apr_\w+$/.test(decider.id)) return undefined;
    const found = await selectToDecide(db, { org_id, id: decider.id }, now);
    return project_ids === null || project_ids.includes(found?.project_id ?? "") ? found : undefined;
  }
  const linkHash = linkHashOf(decider.link);
  return linkHash === undefined ? undefined : selectToDecide(db, { linkHash }, now);
}
