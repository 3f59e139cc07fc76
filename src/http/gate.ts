import { limits } from "../contract/limits.ts";
import { nameOf, type Row } from "../contract/table.ts";
import { Refused, type Caller, type HandlerPlatform } from "../features/context.ts";
import type { Db, Tx } from "../store/database.ts";
import { askForApproval, consumeApproval, finders, type GatedRequest } from "./handlers.ts";

/** Thrown to roll back what a handler did for a request that nobody has approved yet. */
class GateClosed extends Error {
  readonly request: GatedRequest;
  constructor(request: GatedRequest) {
    super("an approval is missing");
    this.request = request;
  }
}

/** Whether a human must approve this row for this caller. */
export function isGated(row: Row, caller: Caller): boolean {
  return row.approval && caller.approval_mode;
}

/** The ids of what the path names, as the caller's organization has them now. */
export async function resourceIds(db: Db | Tx, row: Row, caller: Caller, params: unknown): Promise<readonly string[]> {
  if (row.names === null) return [];
  const found = await finders[row.names](db, caller, nameOf(row, params) ?? "");
  return found === undefined ? [] : [found.id];
}

/**
 * Stands behind the handler: everything that can be refused has been refused, and what was written is not committed. Uses the approval up
 * and lets the transaction go on, or ends it. The approval's id.
 */
export async function passGate(tx: Tx, request: GatedRequest, now: Date): Promise<string> {
  const id = await consumeApproval(tx, request, now);
  if (id === undefined) throw new GateClosed(request);
  return id;
}

/**
 * Turns a closed gate into the refusal that names the approval; throws any other error as it is. Nobody is asked about what `look` refuses:
 * that is in the world, where the handler could not look.
 */
export async function askAtGate(platform: HandlerPlatform, error: unknown, look?: () => Promise<void>): Promise<never> {
  if (!(error instanceof GateClosed)) throw error;
  await look?.();
  const asked = await askForApproval(platform, error.request);
  if (asked.outcome === "full")
    throw new Refused("rate_limited", {
      error: `${limits.approvals_pending} requests of the organization wait for a human already.`,
      hint: "Wait until some of them are decided.",
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
