import { releaseReach, requestBuild, requirePreviewBranch, requireUpload } from "../builds/builds.ts";
import type { Context, Handlers } from "../context.ts";
import { activeOf, comingDeployment } from "../deployments/deployments.ts";
import { requireRoomForBuild } from "../disk/disk.ts";
import { commentOf, commentText } from "../follow/follow.ts";
import { shownEnd } from "../projects/projects.ts";
import { copyToPreview, openPreview, pinPreview, removePreview, type Preview, type Previewing } from "./previews.ts";
import * as queries from "./queries.ts";

export const previews: Handlers<"previews"> = {
  async list(ctx) {
    const rows = await queries.listPreviews(ctx.tx, ctx.project.key);
    return { previews: rows.map((row) => present(ctx, row)) };
  },

  async create(ctx, { body: { branch, from_live } }) {
    await requireUpload(ctx);
    requirePreviewBranch(ctx, branch);
    const { repositories } = ctx.platform.ports;
    const known = await repositories.exists(ctx.project.id);
    const stored = known ? await repositories.resolve(ctx.project.id, `refs/heads/${branch}`) : null;
    const live = known && from_live ? await activeOf(ctx.tx, ctx.project.org_id, ctx.project.id) : undefined;
    const commit = stored ?? live?.commit ?? null;
    if (commit === null)
      return ctx.fail("nothing_to_deploy", {
        error: `The repository has no branch ${branch}.`,
        hint: "Push it first, or make it from what serves: `berth preview create <branch> --from-live`.",
      });
    ctx.note({ target: branch, detail: { commit } });
    return {
      changesLate: true as const,
      outcome: (signal) => build(ctx, { branch, commit, isNew: stored === null }, signal),
    };
  },

  async delete(ctx, { params }) {
    const found = await previewOf(ctx, params.preview);
    const { org_id } = ctx.project;
    const preview = { org_id, project_id: found.id, requested_by: ctx.caller.token_name };
    await removePreview(ctx.tx, ctx.platform.wakeups, preview);
    ctx.note({ target: found.branch });
    return undefined;
  },

  pin: (ctx, { params }) => pin(ctx, params.preview, true),

  unpin: (ctx, { params }) => pin(ctx, params.preview, false),

  async comment(ctx, { params }) {
    const found = await previewOf(ctx, params.preview);
    const row = await commentOf(ctx.tx, { org_id: ctx.project.org_id, project_id: found.id });
    if (row === undefined) return ctx.fail("not_found");
    const { appUrl, controlUrl } = ctx.platform.addresses;
    const { facts, request, request_url: url, comment_id, problem } = row;
    const text = commentText({
      ...facts,
      url: appUrl(facts.hostname),
      page: `${controlUrl}/projects/${facts.slug}/builds`,
      expires_at: shownEnd(found.expires_at),
    });
    return {
      text,
      request: request === null || url === null ? null : { number: request, url },
      posted: comment_id !== null,
      problem,
    };
  },

  async promote(ctx, { params, body }) {
    const { org_id, id: project_id } = ctx.project;
    const { branch, ...preview } = await previewOf(ctx, params.preview);
    const live = await activeOf(ctx.tx, org_id, preview.id);
    if (live === undefined)
      return ctx.fail("nothing_to_deploy", {
        error: `The preview of ${branch} serves nothing.`,
        hint: `Push the branch again: git push berth ${branch}`,
      });
    const { expected_commit: expected = live.commit } = body;
    if (expected !== live.commit)
      return ctx.fail("conflict", {
        error: `The preview of ${branch} serves commit ${live.commit.slice(0, 8)} now, not ${expected.slice(0, 8)}.`,
        hint: "Look at it again, then promote that commit.",
      });
    await requireRoomForBuild(ctx);
    if (await comingDeployment(ctx.tx, org_id, project_id)) return ctx.fail("deploy_in_progress");
    const { token_id, token_name: requested_by, approval_mode: copies_data } = ctx.caller;
    const build = await requestBuild(ctx.tx, ctx.platform.wakeups, {
      ...{ org_id, project_id, origin: "redeploy", commit: live.commit, branch, promoted_from: live.build_id },
      ...{ message: `Promote the preview of ${branch}`, author: null, old_commit: null, lease_owner: null },
      ...{ requested_by, token_id, copies_data },
    });
    const url = ctx.platform.addresses.appUrl(preview.hostname);
    // An approval is for this image: what the preview serves later needs another one.
    ctx.note({
      target: branch,
      resource: live.build_id,
      detail: { commit: live.commit, url, build: live.build_id, ...(await releaseReach(ctx.tx, ctx.project.key)) },
    });
    return { outcome: async () => ({ build_id: build.id, commit: live.commit }) };
  },
};

type OfPreview =
  | Context<"previews.delete">
  | Context<"previews.comment">
  | Context<"previews.pin">
  | Context<"previews.promote">;

/** Returns the preview with this branch or slug. */
async function previewOf({ tx, project, fail }: Pick<OfPreview, "tx" | "project" | "fail">, named: string) {
  const rows = await queries.listPreviews(tx, project.key);
  return rows.find(({ branch }) => branch === named) ?? rows.find(({ slug }) => slug === named) ?? fail("not_found");
}

async function pin(ctx: Context<"previews.pin"> | Context<"previews.unpin">, named: string, stays: boolean) {
  const found = await previewOf(ctx, named);
  if (found.state === "removing") return ctx.fail("not_found");
  const { hours } = ctx.platform.settings.previews;
  await pinPreview(ctx.tx, { org_id: ctx.project.org_id, project_id: found.id }, { stays, hours });
  ctx.note({ target: found.branch });
  return present(ctx, await previewOf(ctx, found.slug));
}

async function build(
  ctx: Context<"previews.create">,
  { branch, commit, isNew }: { readonly branch: string; readonly commit: string; readonly isNew: boolean },
  signal: AbortSignal,
) {
  const { platform, project, caller } = ctx;
  const { db, wakeups, settings, ports, addresses } = platform;
  const previewing: Previewing = { ...platform, appsDomain: addresses.appsDomain, previews: settings.previews };
  const source = { from: project.id, branch, commit, quarantine: null };
  const fill = (preview: Preview) => copyToPreview(ports.repositories, preview, source);
  const opened = await openPreview(previewing, { ...project.key, branch }, { signal, fill });
  if (opened.outcome === "refused") return ctx.fail(opened.code, { error: opened.summary, hint: opened.hint });
  const { org_id, project_id } = opened.preview;
  if (isNew) await ports.repositories.moveRef(project.id, `refs/heads/${branch}`, null, commit);
  const built = { origin: "redeploy", commit, branch, message: `Preview of ${branch}`, author: null } as const;
  const by = { requested_by: caller.token_name, token_id: caller.token_id, old_commit: null, lease_owner: null };
  await db.transaction().execute((tx) => requestBuild(tx, wakeups, { org_id, project_id, ...built, ...by }));
  const row = (await queries.listPreviews(db, project.key)).find(({ id }) => id === project_id);
  return row === undefined ? ctx.fail("not_found") : present(ctx, row);
}

function present({ platform }: Pick<Context<"previews.list">, "platform">, row: queries.ListedPreview) {
  const { hostname, ...shown } = row;
  return { ...shown, expires_at: shownEnd(row.expires_at), url: platform.addresses.appUrl(hostname) };
}
