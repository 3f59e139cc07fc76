import { knownScopes, type Scope } from "../../contract/access.ts";
import { limits } from "../../contract/limits.ts";
import { voidApprovals } from "../approvals/approvals.ts";
import type { Handlers } from "../context.ts";
import * as queries from "./queries.ts";
import { expiryWithin, mayRevoke, mayRevokeOthers, rightsWithin } from "./rules.ts";
import { issueToken, projectIdsOf, requireRightsNow } from "./tokens.ts";

const dayMs = 24 * 60 * 60 * 1000;

export const tokens: Handlers<"tokens"> = {
  async create(ctx, { body }) {
    const { caller, now, tx } = ctx;
    const rights = rightsWithin(caller, {
      role: body.role,
      approval_mode: body.approval_mode,
      scopes: body.scopes as Scope[] | undefined,
    });
    if ("refused" in rights) return ctx.fail("forbidden", { error: rights.refused });
    const { name, expires_in_days } = body;
    const project_ids = body.projects === undefined ? caller.project_ids : await projectIdsOf(ctx, body.projects);
    if ((await queries.lockTokenCount(tx, caller.org_id)) >= limits.tokens_per_organization)
      return ctx.fail("conflict", {
        error: `An organization has at most ${limits.tokens_per_organization} tokens, expired ones included.`,
        hint: "Revoke one that is no longer used: berth tokens revoke <name>",
      });
    await requireRightsNow(ctx);
    const own = await queries.selectToken(tx, caller.org_id, caller.token_id);
    const expires_at = new Date(now.getTime() + expires_in_days * dayMs);
    const made = await issueToken(tx, {
      ...rights,
      project_ids,
      org_id: caller.org_id,
      name,
      created_by: caller.token_id,
      created_at: now,
      expires_at: expiryWithin({ ...caller, expires_at: own?.expires_at ?? null }, expires_at),
    });
    ctx.note({
      target: made.id,
      detail: { name, role: rights.role, expires_in_days, ...(made.projects && { projects: made.projects }) },
    });
    return made;
  },

  async list(ctx) {
    const { tx, caller } = ctx;
    const rows = await queries.listTokens(tx, caller.org_id);
    // Who is limited to projects sees nothing of others elsewhere in the organization.
    const own = caller.project_ids === null ? null : await queries.ownTokenIds(tx, caller);
    const shown = rows.filter(({ id }) => own?.has(id) ?? true);
    return { api_tokens: shown.map((row) => ({ ...row, scopes: knownScopes(row.scopes) })) };
  },

  async delete(ctx, { params }) {
    const { caller, tx } = ctx;
    const token = await queries.selectToken(tx, caller.org_id, params.id);
    if (token === undefined || token.kind === "member") return ctx.fail("not_found");
    if (!mayRevoke(caller, token))
      return ctx.fail("forbidden", { error: "A token cannot revoke a token with more rights than its own." });
    if (!mayRevokeOthers(caller) && !(await queries.ownTokenIds(tx, caller)).has(token.id))
      return ctx.fail("forbidden", {
        error: "Members revoke only their own tokens and programs, and those that these created.",
        hint: "Ask an owner of the organization to revoke it.",
      });
    const keepsOwner = await queries.lockKeepsOwner(tx, caller.org_id, [token.id]);
    if (token.kind === "token" && token.role === "owner" && !keepsOwner) return ctx.fail("last_owner_token");
    if (!(await queries.revokeToken(tx, caller.org_id, token.id))) return ctx.fail("not_found");
    await voidApprovals(tx, ctx.platform.wakeups, { org_id: caller.org_id, token_id: token.id });
    await ctx.platform.wakeups.send(tx, "tokens", token.id);
    ctx.note({ target: token.id, detail: { name: token.name } });
    return undefined;
  },
};
