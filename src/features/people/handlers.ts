import { randomBytes } from "node:crypto";
import { scopes, type Role } from "../../contract/access.ts";
import { limits } from "../../contract/limits.ts";
import { scopesOf } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { Context, Handlers } from "../context.ts";
import { hashOf, mayRevoke, projectIdsOf, requireRightsNow, rightsWithin } from "../tokens/tokens.ts";
import { accountHandlers } from "./accounts.ts";
import { endMembership, endOwnerTokens, requireOtherOwner } from "./end-membership.ts";
import * as queries from "./queries.ts";
import { inviteMs, within } from "./rules.ts";

export const people: Handlers<"people"> = {
  ...accountHandlers,

  async list(ctx) {
    const members = await queries.listMembers(ctx.tx, ctx.caller.org_id);
    // Who is limited to projects learns nothing about people elsewhere in the organization.
    const isSeen = ({ person_id }: { person_id: string | null }) =>
      ctx.caller.project_ids === null || person_id === ctx.caller.person_id;
    return { members: members.filter(isSeen) };
  },

  async update(ctx, { params, body }) {
    const { tx, caller } = ctx;
    const member = await changeable(ctx, params.id);
    const role = body.role ?? member.role;
    const isLimited = body.projects !== undefined && body.projects !== null;
    const limited = isLimited ? await projectIdsOf(ctx, body.projects as string[]) : null;
    const project_ids = body.projects === undefined ? member.project_ids : limited;
    if (role === "owner" && isLimited)
      return ctx.fail("invalid_request", { error: "An owner reaches all projects; only members can be limited." });
    requireToHave(ctx, { role, platform_admin: member.platform_admin });
    const rights = { role, project_ids: role === "owner" ? null : project_ids };
    if (role !== "owner") await requireOtherOwner(ctx, member);
    const isDemoted = member.platform_admin && role !== "owner";
    const last_owner_of = isDemoted ? await endOwnerTokens(ctx, { org_id: caller.org_id, id: member.id }) : [];
    for (const token of await queries.tokensOfMember(tx, caller.org_id, member.id)) {
      const isMember = token.id === member.id;
      const left = isMember ? rights : within(token, rights);
      const most = isMember && member.platform_admin && role === "owner" ? scopes : scopesOf(left.role);
      const kept = isMember ? most : token.scopes.filter((scope) => most.includes(scope));
      await queries.setRights(tx, { org_id: caller.org_id, id: token.id }, { ...left, scopes: kept });
    }
    await ctx.platform.wakeups.send(tx, "tokens");
    const changed = (await queries.selectMember(tx, caller.org_id, member.id)) ?? ctx.fail("not_found");
    const detail = { role, projects: changed.projects, ...(last_owner_of.length > 0 && { last_owner_of }) };
    ctx.note({ target: member.name, resource: member.id, detail });
    return changed;
  },

  async remove(ctx, { params }) {
    const member = await changeable(ctx, params.id);
    return endMembership(ctx, member);
  },

  async invite(ctx, { body }) {
    const { tx, caller, now, platform } = ctx;
    if (body.platform_admin === true && !caller.platform_admin)
      return ctx.fail("forbidden", { error: "Only an administrator of the platform may invite another one." });
    const { role, email = null, platform_admin = false, projects } = body;
    if (role !== "owner" && platform_admin)
      return ctx.fail("invalid_request", { error: "An administrator of the platform is an owner: give the role." });
    if (role === "owner" && projects !== undefined)
      return ctx.fail("invalid_request", { error: "An owner reaches all projects; only members can be limited." });
    requireToHave(ctx, { role, platform_admin });
    await queries.lockPeople(tx, caller.org_id);
    await requireRightsNow(ctx);
    if ((await queries.listInvites(tx, caller.org_id)).length >= limits.invites_open)
      return ctx.fail("conflict", {
        error: `An organization has at most ${limits.invites_open} open invitations.`,
        hint: "Revoke one that is no longer needed.",
      });
    const code = randomBytes(32).toString("base64url");
    const id = newId("inv", now.getTime());
    await queries.insertInvite(tx, {
      ...{ id, org_id: caller.org_id, email, role, platform_admin, created_by: caller.token_id },
      project_ids: projects === undefined ? null : await projectIdsOf(ctx, projects),
      hash: hashOf(code),
      created_at: now,
      expires_at: new Date(now.getTime() + inviteMs),
    });
    const made = (await queries.selectInvite(tx, caller.org_id, id)) ?? ctx.fail("forbidden");
    ctx.note({ target: email ?? id, detail: { role, ...(made.projects && { projects: made.projects }) } });
    // In the URL's fragment, so that it reaches neither server logs nor a Referer.
    const url = `${platform.addresses.controlUrl}/join#${code}`;
    const isTooMany = (await queries.countMailed(tx, caller.org_id, now)) > limits.invites_mailed_per_day;
    return {
      async outcome(signal) {
        if (email === null || platform.ports.mailTo === null) return { ...made, url, mail_problem: null };
        const mail_problem = isTooMany ? tooManyMails : await mailInvite(ctx, { id, email, url }, signal);
        return { ...made, url: mail_problem === null ? null : url, mail_problem };
      },
    };
  },

  async invites(ctx) {
    return { invites: await queries.listInvites(ctx.tx, ctx.caller.org_id) };
  },

  async revoke(ctx, { params }) {
    const found = await queries.selectInvite(ctx.tx, ctx.caller.org_id, params.id);
    if (found === undefined || !(await queries.revokeInvite(ctx.tx, ctx.caller.org_id, found.id)))
      return ctx.fail("not_found");
    ctx.note({ target: found.email ?? found.id, resource: found.id });
    return undefined;
  },
};

const tooManyMails = `The organization has mailed ${limits.invites_mailed_per_day} invitations within a day.`;

/** Mails the link, in a text of which a tenant chooses only the organization's slug. Returns why that failed; null if it did not. */
async function mailInvite(
  { platform: { ports, addresses }, caller, now }: Context<"people.invite">,
  { id, email, url }: { readonly id: string; readonly email: string; readonly url: string },
  signal: AbortSignal,
): Promise<string | null> {
  const text = [
    `The organization ${caller.org_slug} of ${addresses.controlUrl} invites you. To accept, open this link within seven days:`,
    `${url}\n`,
    "It works once. If you do not know the organization, ignore this mail.",
  ].join("\n");
  const subject = `Invitation to ${caller.org_slug}`;
  const message = { id, kind: "invite", subject, text, url: null, created_at: now.toISOString() };
  const sent = await ports.mailTo?.(email).deliver(message, signal);
  return sent?.outcome === "failed" ? sent.reason : null;
}

interface Given {
  readonly role: Role;
  readonly platform_admin: boolean;
}

/** Refuses to give a person scopes that the caller's own token lacks. */
function requireToHave(ctx: Context<"people.invite"> | Context<"people.update">, { role, platform_admin }: Given) {
  const given = role === "owner" && platform_admin ? scopes : scopesOf(role);
  const rights = rightsWithin(ctx.caller, { role, scopes: given });
  if ("refused" in rights) ctx.fail("forbidden", { error: rights.refused });
}

type Changing = Context<"people.update"> | Context<"people.remove">;

/** Locks the organization's people and returns a member whom the caller may change. */
async function changeable(ctx: Changing, id: string) {
  await queries.lockPeople(ctx.tx, ctx.caller.org_id);
  await requireRightsNow(ctx);
  const member = await queries.selectMember(ctx.tx, ctx.caller.org_id, id);
  if (member === undefined) return ctx.fail("not_found");
  if (!mayRevoke(ctx.caller, member))
    return ctx.fail("forbidden", { error: "Only an administrator of the platform may change another one." });
  return member;
}
