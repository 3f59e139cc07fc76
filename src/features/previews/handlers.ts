import { requestBuild, requireUpload } from "../builds/builds.ts";
import type { Context, Handlers } from "../context.ts";
import { copyToPreview, openPreview, removePreview, type Previewing } from "./previews.ts";
import * as queries from "./queries.ts";

export const previews: Handlers<"previews"> = {
  async list(ctx) {
    const rows = await queries.listPreviews(ctx.tx, ctx.project.key);
    return { previews: rows.map((row) => present(ctx, row)) };
  },

  async create(ctx, { body: { branch } }) {
    await requireUpload(ctx);
    if (ctx.project.previews === null)
      return ctx.fail("conflict", {
        error: "The project's previews are off.",
        hint: `Name the branches that get one: \`berth projects settings ${ctx.project.slug} --previews '*'\`.`,
      });
    const { repositories } = ctx.platform.ports;
    if (branch === (ctx.project.deploy_branch ?? "main"))
      return ctx.fail("conflict", { error: `${branch} is the branch that deploys.`, hint: "Give another branch." });
    const known = isBranchName(branch) && (await repositories.exists(ctx.project.id));
    const commit = known ? await repositories.resolve(ctx.project.id, `refs/heads/${branch}`) : null;
    if (commit === null)
      return ctx.fail("nothing_to_deploy", {
        error: `The repository has no branch ${branch}.`,
        hint: "Push it first.",
      });
    ctx.note({ target: branch, detail: { commit } });
    return { changesLate: true as const, outcome: (signal) => build(ctx, { branch, commit }, signal) };
  },

  async delete(ctx, { params }) {
    const rows = await queries.listPreviews(ctx.tx, ctx.project.key);
    const found =
      rows.find(({ branch }) => branch === params.preview) ?? rows.find(({ slug }) => slug === params.preview);
    if (found === undefined) return ctx.fail("not_found");
    const { org_id } = ctx.project;
    const preview = { org_id, project_id: found.id, requested_by: ctx.caller.token_name };
    await removePreview(ctx.tx, ctx.platform.wakeups, preview);
    ctx.note({ target: found.branch });
    return undefined;
  },
};

/** As git's: nothing that a ref name must not hold. */
const isBranchName = (name: string) => /^[^\s~^:?*[\\\p{Cc}]+$/u.test(name) && !/\.\.|@\{|^[-/]|\/$/.test(name);

async function build(
  ctx: Context<"previews.create">,
  { branch, commit }: { readonly branch: string; readonly commit: string },
  signal: AbortSignal,
) {
  const { platform, project, caller } = ctx;
  const { db, wakeups, settings, ports, addresses } = platform;
  const previewing: Previewing = { ...platform, appsDomain: addresses.appsDomain, previews: settings.previews };
  const opened = await openPreview(previewing, { ...project.key, branch }, signal);
  if (opened.outcome === "refused") return ctx.fail(opened.code, { error: opened.summary, hint: opened.hint });
  const { org_id, project_id } = opened.preview;
  await copyToPreview(ports.repositories, opened.preview, { from: project.id, branch, commit, quarantine: null });
  const source = { origin: "redeploy", commit, branch, message: `Preview of ${branch}`, author: null } as const;
  const by = { requested_by: caller.token_name, token_id: caller.token_id, old_commit: null, lease_owner: null };
  await db.transaction().execute((tx) => requestBuild(tx, wakeups, { org_id, project_id, ...source, ...by }));
  const row = (await queries.listPreviews(db, project.key)).find(({ id }) => id === project_id);
  return row === undefined ? ctx.fail("not_found") : present(ctx, row);
}

function present({ platform }: Pick<Context<"previews.list">, "platform">, row: queries.ListedPreview) {
  const { hostname, ...shown } = row;
  return { ...shown, url: platform.addresses.appUrl(hostname) };
}
