import type { Caller, HandlerPlatform, RefusalText } from "../context.ts";
import type { Tx } from "../../store/database.ts";
import { recordActivity } from "../activity/activity.ts";
import { voidApprovals } from "../approvals/approvals.ts";
import { lockKeepsOwner } from "../tokens/tokens.ts";
import * as queries from "./queries.ts";

interface Ending {
  readonly tx: Tx;
  readonly caller: Pick<Caller, "org_id">;
  readonly platform: Pick<HandlerPlatform, "wakeups">;
  readonly fail: (code: "last_owner_token", more: RefusalText) => never;
  readonly note: (note: { target: string; resource: string; detail: Readonly<Record<string, unknown>> }) => void;
}

interface Member {
  readonly id: string;
  readonly name: string;
  readonly role: string;
}

/**
 * Ends a membership with the tokens that it made, and so its sessions, programs, SSH keys and invitations, within a second. Only under the lock
 * of the organization's people.
 */
export async function endMembership(ctx: Ending, member: Member): Promise<undefined> {
  const { tx, caller, platform } = ctx;
  await requireOtherOwner(ctx, member);
  const last_owner_of = await endOwnerTokens(ctx, { org_id: caller.org_id, id: member.id });
  const made = (await queries.tokensOfMember(tx, caller.org_id, member.id)).map(({ id }) => id);
  await queries.revokeTokens(tx, caller.org_id, made);
  for (const token_id of made) await voidApprovals(tx, platform.wakeups, { org_id: caller.org_id, token_id });
  await platform.wakeups.send(tx, "tokens");
  const detail = { tokens: made.length - 1, ...(last_owner_of.length > 0 && { last_owner_of }) };
  ctx.note({ target: member.name, resource: member.id, detail });
  return undefined;
}

export async function requireOtherOwner(
  { tx, caller, fail }: Pick<Ending, "tx" | "caller" | "fail">,
  member: Pick<Member, "id" | "role">,
): Promise<void> {
  const ending = (await queries.tokensOfMember(tx, caller.org_id, member.id)).map(({ id }) => id);
  const keeps = await lockKeepsOwner(tx, caller.org_id, ending);
  if (member.role === "owner" && !keeps)
    fail("last_owner_token", {
      error: "The organization would have no owner left: the tokens that this person made do not stay owners.",
      hint: "Make another person with a passkey an owner first.",
    });
}

/**
 * Ends the owner tokens that an administrator's membership made in other organizations: the administrator has seen their texts. Returns the
 * organizations of those that stay, because nobody else owns these.
 */
export async function endOwnerTokens(
  { tx, platform }: Pick<Ending, "tx" | "platform">,
  member: { readonly org_id: string; readonly id: string },
): Promise<string[]> {
  const kept: string[] = [];
  for (const { id, org_id, org_slug, name } of await queries.ownerTokensElsewhere(tx, member)) {
    if (!(await lockKeepsOwner(tx, org_id, [id]))) {
      kept.push(org_slug);
      continue;
    }
    await queries.revokeTokens(tx, org_id, [id]);
    await voidApprovals(tx, platform.wakeups, { org_id, token_id: id });
    await recordActivity(tx, {
      ...{ org_id, project_id: null, actor_token_id: null, actor_name: "The platform's operator" },
      ...{ action: "token.deleted", target: id, detail: { name } },
    });
  }
  return kept;
}
