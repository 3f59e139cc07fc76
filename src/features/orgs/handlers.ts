import { scopesOf, type Body, type Result } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { Topic } from "../../store/wakeups.ts";
import { recordEvent } from "../activity/activity.ts";
import type { Context, Handlers } from "../context.ts";
import { scaleProject } from "../deployments/deployments.ts";
import { issueToken } from "../tokens/tokens.ts";
import * as queries from "./queries.ts";

const dayMs = 24 * 60 * 60 * 1000;
// Semantics, "Tokens": the default lifetime of a token.
const ownerTokenDays = 90;

export const orgs: Handlers<"orgs"> = {
  async create(ctx, { body }) {
    const { tx, now } = ctx;
    const id = newId("org", now.getTime());
    const { slug, name, max_projects } = body;
    if (!(await queries.insertOrganization(tx, { id, slug, name, max_projects, created_at: now })))
      return ctx.fail("slug_taken", { error: "There is already an organization with this slug." });
    const owner = await issueOwnerToken(ctx, id, "First owner");
    await recordEvent(tx, { org_id: id, project_id: null, action: "org.created", target: slug });
    ctx.note({ target: slug, detail: { max_projects } });
    return { ...present(await queries.showOrganization(tx, id)), owner_token: owner.token };
  },

  async list(ctx) {
    return { orgs: (await queries.listOrganizations(ctx.tx)).map(present) };
  },

  async update(ctx, { params, body }) {
    const { id, slug: target } = await lock(ctx, params.slug);
    const change = given(body);
    const silent = Object.keys(change).length === 0;
    ctx.note({ target, detail: change, silent });
    if (!silent) {
      await queries.updateOrganization(ctx.tx, id, change);
      await recordEvent(ctx.tx, { org_id: id, project_id: null, action: "org.updated", target, detail: change });
      await ctx.platform.wakeups.send(ctx.tx, "tokens");
    }
    return present(await queries.showOrganization(ctx.tx, id));
  },

  async scale(ctx, { body }) {
    const { org_id, id: project_id, slug: target } = ctx.project;
    const isForeign = org_id !== ctx.caller.org_id;
    if (isForeign) await recordEvent(ctx.tx, { org_id, project_id, action: "project.scaled", target, detail: body });
    return scaleProject(ctx, body.replicas);
  },

  async disable(ctx, { params }) {
    const organization = await lock(ctx, params.slug);
    if (organization.id === ctx.caller.org_id)
      return ctx.fail("conflict", {
        error: "This is your own organization. If you suspended it, none of your tokens could enable it again.",
        hint: "An administrator of another organization can suspend it.",
      });
    return change(ctx, organization, true);
  },

  async enable(ctx, { params }) {
    return change(ctx, await lock(ctx, params.slug), false);
  },

  async rescue(ctx, { params }) {
    const { id: org_id, slug: target } = await lock(ctx, params.slug);
    const { id, token, expires_at } = await issueOwnerToken(ctx, org_id, "Rescue owner");
    await recordEvent(ctx.tx, { org_id, project_id: null, action: "org.rescued", target, detail: { id } });
    ctx.note({ target, detail: { id } });
    return { id, owner_token: token, expires_at: expires_at as string };
  },
};

/** Creates a token with all rights of an owner, in approval mode if the caller's token is. */
function issueOwnerToken(
  { tx, now, caller }: Pick<LockContext, "tx" | "now" | "caller">,
  org_id: string,
  name: string,
) {
  return issueToken(tx, {
    ...{ org_id, name, role: "owner", scopes: scopesOf("owner"), project_ids: null },
    approval_mode: caller.approval_mode,
    created_by: caller.token_id,
    created_at: now,
    expires_at: new Date(now.getTime() + ownerTokenDays * dayMs),
  });
}

type LockContext = Context<"orgs.rescue"> | Context<"orgs.update"> | Context<"orgs.disable"> | Context<"orgs.enable">;

async function lock({ tx, fail }: Pick<LockContext, "tx" | "fail">, slug: string) {
  return (await queries.lockOrganization(tx, slug)) ?? fail("not_found");
}

// Omitted fields stay unchanged.
function given({ name, max_projects }: Body<"orgs.update">) {
  return { ...(name === undefined ? {} : { name }), ...(max_projects === undefined ? {} : { max_projects }) };
}

/** Wakes every task that acts for an organization. */
const topics: readonly Topic[] = ["tokens", "apps", "edge", "cron", "releases", "builds"];

async function change(
  ctx: Context<"orgs.disable"> | Context<"orgs.enable">,
  organization: { readonly id: string; readonly slug: string; readonly suspended_at: string | null },
  suspend: boolean,
): Promise<Result<"orgs.enable">> {
  const { tx, platform, now } = ctx;
  const { id, slug: target } = organization;
  const same = (organization.suspended_at !== null) === suspend;
  ctx.note({ target, silent: same });
  if (!same) {
    await queries.setSuspended(tx, id, suspend ? now : null);
    await recordEvent(tx, { org_id: id, project_id: null, action: suspend ? "org.disabled" : "org.enabled", target });
    for (const topic of topics) await platform.wakeups.send(tx, topic);
  }
  return present(await queries.showOrganization(tx, id));
}

function present(row: queries.OrganizationRow): Result<"orgs.enable"> {
  return { ...row, state: row.suspended_at === null ? "active" : "suspended" };
}
