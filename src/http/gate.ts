import { limits } from "../contract/limits.ts";
import type { Row } from "../contract/table.ts";
import { Refused, type Caller } from "../features/context.ts";
import type { Tx } from "../store/database.ts";
import { consumeApproval, type Asked, type GatedRequest } from "../features/approvals/approvals.ts";

/** Thrown to roll back the changes of a handler whose request has no approval yet. */
class GateClosed extends Error {
  readonly request: GatedRequest;
  constructor(request: GatedRequest) {
    super("an approval is missing");
    this.request = request;
  }
}

/** Returns whether a human must approve this row for this caller. */
export function isGated(row: Row, caller: Caller): boolean {
  return row.approval && caller.approval_mode;
}

/** Consumes this request's approval and returns its id, or throws to roll back. A request that its handler refuses needs none. */
export async function passGate(tx: Tx, request: GatedRequest, now: Date): Promise<string> {
  const id = await consumeApproval(tx, request, now);
  if (id === undefined) throw new GateClosed(request);
  return id;
}

/**
 * Turns a closed gate into the refusal that names the approval, which `ask` requests, and rethrows any other error. `look` checks conditions outside the database
 * and throws the refusal before a human is asked to approve the request.
 */
export async function askAtGate(
  error: unknown,
  ask: (request: GatedRequest) => Promise<Asked>,
  look?: () => Promise<void>,
): Promise<never> {
  if (!(error instanceof GateClosed)) throw error;
  await look?.();
  const asked = await ask(error.request);
  if (asked.outcome === "full")
    throw new Refused("rate_limited", {
      ...(asked.of === "token"
        ? {
            error: `This token already has ${limits.approvals_pending_of_token} requests that wait for approval, or were withdrawn within 10 minutes.`,
            hint: "Wait for a decision, or withdraw one that is no longer needed: DELETE /v1/approvals/:id (`berth approvals withdraw <id>`).",
          }
        : {
            error: `The organization already has ${limits.approvals_pending} requests that wait for approval.`,
            hint: "Let an owner decide some of them first.",
          }),
      retryAfterSeconds: 60,
      next: { route: "approvals.list", method: "GET", path: "/v1/approvals?status=pending" },
    });
  const { id, status, expires_at } = asked.approval;
  if (asked.outcome === "denied")
    throw new Refused("approval_denied", {
      approval: { id, status, expires_at: null },
      retryAfterSeconds: asked.retryAfterSeconds,
    });
  throw new Refused("approval_required", {
    approval: { id, status, expires_at },
    next: { route: "approvals.get", method: "GET", path: `/v1/approvals/${id}?wait=${limits.approval_wait_seconds}` },
  });
}
