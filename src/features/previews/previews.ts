import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "../../kit/ids.ts";
import type { Quarantine, Repositories } from "../../ports/repositories.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { recordEvent } from "../activity/activity.ts";
import { extendBranch, type Asking } from "../branches/branches.ts";
import * as projects from "../projects/projects.ts";
import { requestPurge } from "../purges/purges.ts";
import { awaitData, DataRefused, requestData } from "./preview-data.ts";
import * as queries from "./queries.ts";
import { slugsFor, type PreviewSettings } from "./rules.ts";

export { selectPreview } from "./queries.ts";
export { agentBranch, hasPreviews, isBranchName, type PreviewSettings } from "./rules.ts";

export interface Previewing extends Asking {
  readonly appsDomain: string;
  readonly previews: PreviewSettings;
}

export interface WantedPreview extends projects.ProjectKey {
  readonly branch: string;
}

export interface Preview extends projects.ProjectKey {
  readonly slug: string;
  readonly hostname: string;
  readonly expires_at: Date;
}

/** A preview that is ready for a build, or why there is none: a sentence and what to do. */
export type OpenedPreview<Filled> =
  | { readonly outcome: "opened"; readonly preview: Preview; readonly filled: Filled }
  | {
      readonly outcome: "refused";
      readonly code: "preview_limit_reached" | "operation_in_progress" | DataRefused["code"];
      readonly summary: string;
      readonly hint: string;
    };

const waitMs = 60_000;
const askEveryMs = 300;

/** Finds or creates the preview of a branch. One that is being removed goes first. Resolves once it has its source and its database. */
export async function openPreview<Filled>(
  previewing: Previewing,
  wanted: WantedPreview,
  // `fill` gives the preview its source, while its database is made.
  { signal, fill }: { readonly signal: AbortSignal; readonly fill: (preview: Preview) => Promise<Filled> },
): Promise<OpenedPreview<Filled>> {
  try {
    for (const until = Date.now() + waitMs; ; await sleep(askEveryMs, undefined, { signal })) {
      const preview = await previewing.db.transaction().execute((tx) => openInside(previewing, tx, wanted));
      if (preview === "limit") return overLimit(previewing.previews.perProject);
      if (preview === "removing" && Date.now() > until) return stillThere;
      if (preview === "removing") continue;
      const filled = await fill(preview);
      await awaitData(previewing, preview, signal);
      return { outcome: "opened", preview, filled };
    }
  } catch (error) {
    if (!(error instanceof DataRefused)) throw error;
    const { code, message: summary, hint } = error;
    return { outcome: "refused", code, summary, hint };
  }
}

const overLimit = (most: number): OpenedPreview<never> => ({
  outcome: "refused",
  code: "preview_limit_reached",
  summary: `The project has ${most} previews, which is the most.`,
  hint: "Delete one that is no longer needed: `berth preview list`, `berth preview delete <branch>`.",
});

const stillThere: OpenedPreview<never> = {
  outcome: "refused",
  code: "operation_in_progress",
  summary: "An earlier preview of this branch is still being removed.",
  hint: "Try again in a minute.",
};

export function isPinned({ preview_expires_at: end }: Pick<queries.PreviewRow, "preview_expires_at">): boolean {
  return end !== null && projects.shownEnd(end) === null;
}

/** Lets a preview, with the branch of data that it uses, stay until it is deleted, or end as other previews do. */
export async function pinPreview(
  tx: Tx,
  preview: projects.ProjectKey,
  { stays, hours }: { readonly stays: boolean } & Pick<PreviewSettings, "hours">,
): Promise<void> {
  await projects.lockProject(tx, preview);
  const end = projects.previewEnd({ hours }, stays);
  await queries.setPreviewEnd(tx, preview, end);
  await extendBranch(tx, preview, end);
}

/** Deletes a preview with everything that it has: it stops serving at once, and its purge keeps no backup. */
export async function removePreview(
  tx: Tx,
  wakeups: Wakeups,
  preview: projects.ProjectKey & { readonly requested_by: string },
): Promise<void> {
  const project = await projects.lockProject(tx, preview);
  if (project === undefined || project.purged_at !== null) return;
  if (project.deleted_at === null) await projects.setDeleted(tx, preview, true);
  await requestPurge(tx, wakeups, preview);
  for (const topic of ["apps", "edge"] as const) await wakeups.send(tx, topic, preview.project_id);
}

/** Removes previews that have expired or whose project is deleted; returns their number. */
export async function removeEndedPreviews(db: Db, wakeups: Wakeups): Promise<number> {
  const ended = await queries.endedPreviews(db);
  for (const key of ended)
    await db.transaction().execute(async (tx) => {
      const project = await projects.lockProject(tx, key);
      await removePreview(tx, wakeups, { ...key, requested_by: "berth" });
      if (project?.deleted_at === null)
        await recordEvent(tx, { ...key, action: "preview.ended", target: project.git_branch });
    });
  return ended.length;
}

/** Copies a commit, with its history, into a preview's repository and makes it the head of its branch. */
export async function copyToPreview(
  repositories: Repositories,
  preview: projects.ProjectKey,
  source: {
    readonly from: string;
    readonly branch: string;
    readonly commit: string;
    readonly quarantine: Quarantine | null;
  },
): Promise<{ readonly old_commit: string | null }> {
  const { from, branch, commit, quarantine } = source;
  const { project_id: to } = preview;
  const ref = `refs/heads/${branch}`;
  const pin = newId("bld");
  await repositories.ensure(to);
  const old_commit = await repositories.resolve(to, ref);
  if (old_commit === commit) return { old_commit };
  try {
    // A change of the preview's own source is not in the repository that the branch comes from.
    const isKnown = old_commit !== null && (await repositories.peel(from, old_commit, null)) !== null;
    await giveCommit(repositories, { from, to, commit, quarantine, since: isKnown ? old_commit : null, pin });
    await repositories.moveRef(to, ref, old_commit, commit);
    await repositories.setHead(to, ref);
  } finally {
    for (const id of [from, to]) await repositories.unpin(id, pin);
  }
  return { old_commit };
}

interface Given {
  readonly from: string;
  readonly to: string;
  readonly commit: string;
  readonly quarantine: Quarantine | null;
  /** A commit that `to` has already. */
  readonly since: string | null;
  readonly pin: string;
}

/** Gives a repository a commit of another one, with its history; `pin` then keeps it in both. */
export async function giveCommit(repositories: Repositories, given: Given): Promise<void> {
  const { from, to, commit, quarantine, since, pin } = given;
  if ((await repositories.peel(to, commit, null)) !== null) return repositories.pin(to, pin, commit, null);
  await repositories.pin(from, pin, commit, quarantine);
  const bundle = await repositories.pack(from, { pin, since });
  if (bundle === null) throw new Error("a pinned commit is missing");
  await repositories.unpack(to, bundle);
}

/** Returns what the platform adds to the environment of a preview; nothing for other projects. */
export async function previewEnv(db: Db, project: projects.ProjectKey): Promise<Record<string, string>> {
  const facts = await queries.previewFacts(db, project);
  if (facts === undefined) return {};
  return { BERTH_PREVIEW: "1", BERTH_PREVIEW_OF: facts.of, BERTH_GIT_BRANCH: facts.branch };
}

async function openInside(
  previewing: Previewing,
  tx: Tx,
  wanted: WantedPreview,
): Promise<Preview | "limit" | "removing"> {
  const { previews } = previewing;
  const { org_id, branch } = wanted;
  const parent = await projects.lockProject(tx, wanted);
  if (parent === undefined || parent.deleted_at !== null) throw new Error("the project of a preview is deleted");
  const found = await queries.selectPreview(tx, wanted, branch);
  if (found !== undefined && found.deleted_at !== null) return "removing";
  if (found === undefined && (await queries.countPreviews(tx, wanted)) >= previews.perProject) return "limit";
  const expires_at = projects.previewEnd(previews, found !== undefined && isPinned(found));
  const row = found ?? (await insert(previewing, tx, { ...wanted, slug: parent.slug, expires_at }));
  await queries.refreshPreview(tx, row, expires_at);
  const key = { org_id, project_id: row.id };
  await requestData(previewing, tx, { ...key, parent, name: row.slug, expires_at });
  return { ...key, slug: row.slug, hostname: row.hostname, expires_at };
}

async function insert(
  { vault, appsDomain }: Previewing,
  tx: Tx,
  { org_id, project_id, branch, slug: parent, expires_at }: WantedPreview & { slug: string; expires_at: Date },
): Promise<queries.PreviewRow> {
  const id = newId("prj");
  const sealed_cron_secret = vault.seal(id, "cron_secret", randomBytes(32).toString("base64url"));
  const isFirst = await queries.isFirstOrganization(tx, org_id);
  const preview = { preview_of: project_id, git_branch: branch, deploy_branch: branch, preview_expires_at: expires_at };
  for (const slug of slugsFor(branch, parent))
    for (const hostname of projects.hostnamesFor(slug, appsDomain, isFirst)) {
      if (await projects.isHostnameTaken(tx, hostname)) continue;
      const row = { id, org_id, slug, name: branch.slice(0, 100), hostname };
      if (await projects.insertProject(tx, { ...row, ...preview, sealed_cron_secret }))
        return { ...row, deleted_at: null, preview_expires_at: expires_at.toISOString() };
      break;
    }
  throw new Error("no slug or hostname was free for a preview");
}
