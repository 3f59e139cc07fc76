import { randomBytes } from "node:crypto";
import { limits } from "../../contract/limits.ts";
import type { Body } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import { awaitOutcome } from "../await-outcome.ts";
import type { Context, Handlers, RefusalText } from "../context.ts";
import { removePreview } from "../previews/previews.ts";
import { purgeState, requestPurge, runningPurge } from "../purges/purges.ts";
import { awaitEdges, edgesConfirm } from "../routes/routes.ts";
import { presentProject } from "./projects.ts";
import * as queries from "./queries.ts";
import { hostnamesFor } from "./rules.ts";

export const projects: Handlers<"projects"> = {
  async create(ctx, { body }) {
    const { fits, fits_deleted, most_deleted, is_first } = await queries.lockProjectLimit(ctx.tx, ctx.caller.org_id);
    if (!fits) return ctx.fail("project_limit_reached");
    if (!fits_deleted)
      return ctx.fail("project_limit_reached", {
        error: `The organization keeps ${most_deleted} deleted projects, which is the most.`,
        hint: "Purge one that is no longer needed: berth projects purge <slug>",
      });
    const id = await insert(ctx, body, hostnamesFor(body.slug, ctx.platform.addresses.appsDomain, is_first));
    ctx.note({ project_id: id, target: body.slug });
    return show(ctx, body.slug);
  },

  async list(ctx, { query }) {
    const rows = await queries.listProjects(ctx.tx, ctx.caller, query);
    return { projects: rows.map((row) => presentProject(ctx.platform, row, ctx.now)) };
  },

  async get(ctx, { params }) {
    return show(ctx, params.slug);
  },

  async settings(ctx, { body }) {
    const { key, slug: target } = ctx.project;
    const wanted = given(body);
    const { changed, before, after } = differences(ctx.project, wanted);
    if (ctx.project.preview_of !== null && body.previews)
      return ctx.fail("invalid_request", { error: "A preview has no previews of its own." });
    if (ctx.caller.approval_mode && givesAway(ctx.project, body))
      return ctx.fail("forbidden", {
        error:
          "A token in approval mode cannot change what agents may do, nor give previews the project's variables or unmasked data, nor choose another root folder, with another mask, where agents deploy to previews only.",
        hint: "Ask an owner.",
      });
    ctx.note({ target, detail: { changed, before, after }, silent: changed.length === 0 });
    if (Object.keys(wanted).length > 0) await queries.updateSettings(ctx.tx, key, wanted);
    return show(ctx, target);
  },

  async rename(ctx, { body }) {
    const { key, slug: from } = ctx.project;
    if (from === body.slug) return show(ctx, from);
    const { is_first } = await queries.lockProjectLimit(ctx.tx, key.org_id);
    const hostname = await nameFor(ctx, body.slug, is_first);
    await queries.renameProject(ctx.tx, key, { slug: body.slug, hostname }, limits.earlier_name_days);
    ctx.note({ target: body.slug, detail: { from } });
    for (const topic of ["apps", "edge"] as const) await ctx.platform.wakeups.send(ctx.tx, topic, key.project_id);
    return show(ctx, body.slug);
  },

  async maintenance(ctx, { body }) {
    const { key, slug: target, maintenance_since } = ctx.project;
    const isSame = !body.on && maintenance_since === null;
    ctx.note({ target, detail: { on: body.on }, silent: isSame });
    if (body.on) await queries.startMaintenance(ctx.tx, key, body.message);
    else await queries.endMaintenance(ctx.tx, key);
    const shown = await show(ctx, target);
    return { outcome: async (signal) => (isSame ? shown : onceServed(ctx, shown, signal)) };
  },

  async delete(ctx, { params, query }) {
    const project = await lock(ctx, params.slug);
    if (query.purge) return purge(ctx, project);
    if (project.deleted_at !== null)
      return ctx.fail("project_deleted", {
        error: "The project is already deleted.",
        hint: "Undelete it, or delete it for good with ?purge=true.",
      });
    if (project.preview_of !== null) {
      await removePreview(ctx.tx, ctx.platform.wakeups, { ...keyOf(project), requested_by: ctx.caller.token_name });
      ctx.note({ project_id: project.id, target: project.slug });
      const shown = await show(ctx, project.slug);
      return { outcome: async () => ({ ...shown, purged: false, final_backup_id: null }) };
    }
    const deleted = await change(ctx, project, true);
    // Its previews go with it.
    await ctx.platform.wakeups.send(ctx.tx, "purges", project.id);
    const { purgeDays } = ctx.platform.settings;
    // For the dialog and the page on which a person decides: after this time the project cannot be undeleted.
    if (purgeDays > 0)
      ctx.note({ detail: { undelete_until: new Date(ctx.now.getTime() + purgeDays * dayMs).toISOString() } });
    return { outcome: async () => ({ ...deleted, purged: false, final_backup_id: null }) };
  },

  async undelete(ctx, { params }) {
    const { fits } = await queries.lockProjectLimit(ctx.tx, ctx.caller.org_id);
    const project = await lock(ctx, params.slug);
    if (project.deleted_at === null)
      return ctx.fail("conflict", { error: "The project is not deleted.", hint: "No action is needed." });
    if (!fits) return ctx.fail("project_limit_reached");
    if ((await runningPurge(ctx.tx, { org_id: project.org_id, project_id: project.id })) !== undefined)
      return ctx.fail("operation_in_progress", { error: "The project is being purged." });
    return change(ctx, project, false);
  },
};

/** Returns whether settings give rights or data away, to agents or to the code of previews. */
function givesAway(project: Context<"projects.settings">["project"], body: Body<"projects.settings">): boolean {
  const { agents, preview_data, preview_variables, root } = body;
  const known = project.preview_variables ?? [];
  const opensData = preview_data === "branch" && project.preview_data !== "branch";
  const changesMask = project.agents === "preview" && root !== undefined && root !== project.root;
  return (
    agents !== undefined || opensData || changesMask || (preview_variables ?? []).some((name) => !known.includes(name))
  );
}

const keyOf = ({ org_id, id }: queries.ProjectRow) => ({ org_id, project_id: id });

const edgesWithinMs = 15_000;
const dayMs = 86_400_000;

type AnyContext = Pick<Context<"projects.get">, "caller" | "platform"> & {
  readonly tx: Db | Tx;
  readonly fail: (code: "not_found") => never;
};
type ChangeContext = AnyContext & Pick<Context<"projects.undelete">, "tx" | "note">;

async function show(ctx: AnyContext, slug: string) {
  const row = await queries.showProject(ctx.tx, ctx.caller.org_id, slug);
  if (row === undefined) return ctx.fail("not_found");
  return presentProject(ctx.platform, row, ctx.platform.clock.now());
}

async function lock(ctx: ChangeContext, slug: string): Promise<queries.ProjectRow> {
  const { org_id } = ctx.caller;
  const found = await queries.selectProject(ctx.tx, org_id, slug);
  const locked = found && (await queries.lockProject(ctx.tx, { org_id, project_id: found.id }));
  return locked === undefined || locked.purged_at !== null ? ctx.fail("not_found") : locked;
}

/** Returns the hostname for a new slug of `ctx.project`: its former one, if the project had the slug and that has not expired. */
async function nameFor(ctx: Context<"projects.rename">, slug: string, isFirst: boolean): Promise<string> {
  const { tx, project, platform } = ctx;
  const former = await queries.takeBackName(tx, project.key, slug);
  if (former !== undefined) return former;
  const other = await queries.selectProject(tx, project.org_id, slug);
  if (other !== undefined) return ctx.fail("slug_taken", textOfTaken(other, slug));
  if ((await queries.countEarlierNames(tx, project.key)) >= limits.earlier_names_per_project)
    return ctx.fail("conflict", {
      error: `The project has ${limits.earlier_names_per_project} earlier names that still redirect to it, which is the most.`,
      hint: "Use one of those names again, or wait until the oldest has expired.",
    });
  for (const hostname of hostnamesFor(slug, platform.addresses.appsDomain, isFirst))
    if (!(await queries.isHostnameTaken(tx, hostname))) return hostname;
  throw new Error("no hostname was free for a renamed project");
}

/** Waits until every edge serves the change, so that it applies to the next request. An edge that starts later reads the rows before it serves. */
async function onceServed<T>(ctx: Context<"projects.maintenance">, shown: T, signal: AbortSignal): Promise<T> {
  if ((await edgesConfirm(ctx.platform.db, 0, "route_version")) === "no_edge") return shown;
  if ((await awaitEdges(ctx.platform, { timeoutMs: edgesWithinMs, signal })) !== "behind") return shown;
  return ctx.fail("edge_unavailable", {
    error: "The change is stored, but an edge has not confirmed it yet.",
    hint: "The edge applies it as soon as it responds again; `berth status --platform` shows its state.",
  });
}

/** Requests the purge in this transaction; the outcome is reached when the project is gone. */
async function purge(ctx: Context<"projects.delete">, project: queries.ProjectRow) {
  const { org_id, id: project_id, slug: target } = project;
  if (project.deleted_at === null)
    return ctx.fail("conflict", {
      error: "Only a deleted project can be purged.",
      hint: `Delete it first: \`berth projects delete ${target}\`.`,
    });
  const shown = await show(ctx, target);
  const key = { org_id, project_id };
  const id = await requestPurge(ctx.tx, ctx.platform.wakeups, { ...key, requested_by: ctx.caller.token_name });
  ctx.note({ project_id, target, action: "project.purge_requested", detail: { purge: true } });
  const { db, wakeups } = ctx.platform;
  const outcome = (signal: AbortSignal) =>
    awaitOutcome(wakeups, { id, signal }, async () => {
      const state = await purgeState(db, org_id, id);
      if (state?.status === "failed")
        return ctx.fail("conflict", { error: state.problem ?? "The purge failed.", foreign: true });
      return state?.status === "completed" ? { ...shown, purged: true, final_backup_id: state.backup_id } : undefined;
    });
  return { outcome };
}

async function insert(
  ctx: Context<"projects.create">,
  body: { slug: string; name: string },
  hostnames: readonly string[],
): Promise<string> {
  const { tx, caller, platform } = ctx;
  const id = newId("prj", ctx.now.getTime());
  const sealed_cron_secret = platform.vault.seal(id, "cron_secret", randomBytes(32).toString("base64url"));
  const known = await queries.selectProject(tx, caller.org_id, body.slug);
  if (known !== undefined) return ctx.fail("slug_taken", textOfTaken(known, body.slug));
  for (const hostname of hostnames) {
    if (await queries.isHostnameTaken(tx, hostname)) continue;
    if (await queries.insertProject(tx, { ...body, id, org_id: caller.org_id, hostname, sealed_cron_secret }))
      return id;
    const other = await queries.selectProject(tx, caller.org_id, body.slug);
    if (other !== undefined) return ctx.fail("slug_taken", textOfTaken(other, body.slug));
  }
  throw new Error("no hostname was free for a new project");
}

async function change(ctx: ChangeContext, project: queries.ProjectRow, deleted: boolean) {
  await queries.setDeleted(ctx.tx, { org_id: ctx.caller.org_id, project_id: project.id }, deleted);
  if (!deleted) await ctx.platform.wakeups.send(ctx.tx, "databases", project.id);
  await ctx.platform.wakeups.send(ctx.tx, "apps", project.id);
  await ctx.platform.wakeups.send(ctx.tx, "edge", project.id);
  ctx.note({ project_id: project.id, target: project.slug });
  return show(ctx, project.slug);
}

// Omitted settings stay unchanged; null resets a setting.
function given(body: { readonly [K in keyof queries.ProjectSettings]?: queries.ProjectSettings[K] | undefined }) {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as queries.ProjectSettings;
}

function differences(project: Partial<queries.ProjectSettings>, wanted: Partial<queries.ProjectSettings>) {
  const names = Object.keys(wanted) as (keyof queries.ProjectSettings)[];
  const changed = names.filter((name) => JSON.stringify(project[name]) !== JSON.stringify(wanted[name]));
  const valuesOf = (from: Partial<queries.ProjectSettings>) =>
    Object.fromEntries(changed.map((name) => [name, from[name] ?? null]));
  return { changed, before: valuesOf(project), after: valuesOf(wanted) };
}

function textOfTaken({ slug, deleted_at }: queries.ProjectRow, wanted: string): RefusalText {
  if (slug !== wanted)
    return {
      error: `${wanted} was the slug of the project ${slug} and still redirects to it.`,
      hint: "Choose another slug, or wait until the earlier name has expired.",
    };
  if (deleted_at === null)
    return {
      error: `Your organization already has a project ${slug}.`,
      hint: "Choose another slug, or use that project.",
    };
  return {
    error: `A deleted project of your organization has the slug ${slug}.`,
    hint: "Undelete it, purge it to free the slug, or choose another slug.",
    next: { route: "projects.undelete", method: "POST", path: `/v1/projects/${slug}/undelete` },
  };
}
