import { limits } from "../../contract/limits.ts";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { recordActivity } from "../activity/activity.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Caller } from "../context.ts";
import { sendMessage, type Sending } from "../notifications/notifications.ts";
import * as queries from "./queries.ts";
import { durations, fingerprintOf, newLink, resourceOf, shownBody, summaryOf, type SameRequest } from "./rules.ts";

export { affectedBy, touchedBy, type Reach } from "./affected.ts";
export { rehearsePromotion, rehearsePromotions } from "./rehearse-promotion.ts";
export { reviewOf, type Review } from "./review.ts";
export { decide, openDecision, type Decision } from "./decide.ts";
export { wordsOf } from "./words.ts";

/** A request by a token in approval mode that its handler has found valid. */
export interface GatedRequest extends Omit<SameRequest, "org_id" | "token_id"> {
  readonly caller: Pick<Caller, "org_id" | "org_slug" | "token_id" | "token_name">;
  /** The names of the body's fields whose values are secret: no answer and no page shows them. */
  readonly secrets: readonly string[];
  readonly path: string;
  readonly summary: string;
  readonly project_id: string | null;
  readonly target: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** Consumes the approval of exactly this request, in the transaction that does it; returns its id, or undefined without one. */
export async function consumeApproval(tx: Tx, request: GatedRequest, now: Date): Promise<string | undefined> {
  return queries.consumeApproval(tx, keyOf(request), now);
}

/** Returns the approval with this id in the caller's organization, whatever its state. */
export async function findApproval(db: Db | Tx, org_id: string, id: string) {
  return queries.selectApproval(db, { org_id, id }, new Date());
}

/** The dependencies of `askForApproval`. */
interface Asking extends Sending {
  readonly db: Db;
  readonly clock: Clock;
  readonly addresses: { readonly controlUrl: string };
}

export type Asked =
  /** It is pending or already approved. Repeating the same request returns the same approval. */
  | { readonly outcome: "open"; readonly approval: queries.ApprovalRow }
  | { readonly outcome: "denied"; readonly approval: queries.ApprovalRow; readonly retryAfterSeconds: number }
  /** The token or the organization has reached its limit of pending approvals. */
  | { readonly outcome: "full"; readonly of: "token" | "organization" };

/** Asks for an approval of this request, in a transaction of its own. Only people receive the decision link. */
export async function askForApproval(platform: Asking, request: GatedRequest): Promise<Asked> {
  const now = platform.clock.now();
  const key = keyOf(request);
  return platform.db.transaction().execute(async (tx): Promise<Asked> => {
    await queries.lockRequests(tx, key.org_id);
    await queries.expireApprovals(tx, now, key.org_id);
    const open = await queries.selectOpen(tx, key, now);
    if (open !== undefined) return { outcome: "open", approval: open };
    const coolSince = new Date(now.getTime() - durations.coolDownMs);
    const asked = { ...key, route: request.route, resource: resourceOf(request) };
    const denial = await queries.selectDenial(tx, asked, coolSince);
    if (denial !== undefined)
      return { outcome: "denied", approval: denial, retryAfterSeconds: coolDownLeft(denial, now) };
    const pending = await queries.countPending(tx, key, { now, withdrawnSince: coolSince });
    if (pending.of_token >= limits.approvals_pending_of_token) return { outcome: "full", of: "token" };
    if (pending.of_organization >= limits.approvals_pending) return { outcome: "full", of: "organization" };
    return { outcome: "open", approval: await make(platform, tx, request, now) };
  });
}

/** Ends a token's approvals because the token is revoked. */
export async function voidApprovals(
  tx: Tx,
  wakeups: Wakeups,
  owner: { readonly org_id: string; readonly token_id: string },
): Promise<void> {
  await tell(tx, wakeups, await queries.expireOfToken(tx, owner));
}

/** Ends an open request because its own token withdraws it; returns false when it is no longer open. */
export async function withdrawApproval(
  tx: Tx,
  wakeups: Wakeups,
  own: { readonly org_id: string; readonly token_id: string; readonly id: string },
): Promise<boolean> {
  const ended = await queries.expireOfToken(tx, own);
  await tell(tx, wakeups, ended);
  return ended.length > 0;
}

/** Expires the approvals whose time is over. Returns their number. */
export async function expireApprovals(db: Db, wakeups: Wakeups, now: Date): Promise<number> {
  const ids = await queries.expireApprovals(db, now);
  await tell(db, wakeups, ids);
  return ids.length;
}

async function tell(db: Db | Tx, wakeups: Wakeups, ids: readonly string[]): Promise<void> {
  for (const id of ids) await wakeups.send(db, "approvals", id);
}

function keyOf(request: GatedRequest): queries.RequestKey {
  const { org_id, token_id } = request.caller;
  return { org_id, token_id, fingerprint: fingerprintOf({ ...request, org_id, token_id }) };
}

function coolDownLeft(denial: queries.ApprovalRow, now: Date): number {
  const decidedMs = Date.parse(denial.decided_at ?? denial.created_at);
  return Math.max(1, Math.ceil((decidedMs + durations.coolDownMs - now.getTime()) / 1000));
}

async function make(platform: Asking, tx: Tx, request: GatedRequest, now: Date): Promise<queries.ApprovalRow> {
  const { caller, route, method, path, project_id, target, body, detail } = request;
  const id = newId("apr", now.getTime());
  const link = newLink();
  const expires_at = new Date(now.getTime() + durations.pendingMs);
  const row = {
    ...keyOf(request),
    id,
    token_name: caller.token_name,
    route,
    method,
    path,
    resource: resourceOf(request),
    project_id,
    target,
    request: JSON.stringify({ summary: request.summary, body: shownBody(body, request.secrets), detail }),
    link_hash: link.hash,
    created_at: now,
    expires_at,
  };
  await queries.insertApproval(tx, row);
  await platform.wakeups.send(tx, "approvals", id);
  const { org_id, token_id: actor_token_id, token_name: actor_name } = caller;
  const asked = (await queries.selectApproval(tx, { org_id, id }, now)) as queries.ApprovalRow;
  const said = { approval_id: id, route, request: summaryOf(asked) };
  await recordActivity(tx, {
    org_id,
    project_id,
    actor_token_id,
    actor_name,
    action: "approval.requested",
    target,
    detail: said,
  });
  await sendMessage(platform, tx, {
    org_id,
    kind: "approval",
    subject: `Approval needed: ${summaryOf(asked)}`,
    text: textOf(request, asked),
    url: `${platform.addresses.controlUrl}/decide/${link.secret}`,
    created_at: now,
    expires_at,
  });
  return asked;
}

function textOf({ caller, method, path }: GatedRequest, asked: queries.ApprovalRow): string {
  return [
    `The token "${caller.token_name}" (${caller.token_id}) of the organization ${caller.org_slug} requests this:`,
    "",
    `    ${summaryOf(asked)}${asked.project === null ? "" : `, in the project ${asked.project}`}`,
    `    ${method} ${path}`,
    "",
    "The link below shows what the request would change and lets you approve or deny it. Opening the link decides nothing.",
    `Without a decision the request expires at ${asked.expires_at}.`,
  ].join("\n");
}
