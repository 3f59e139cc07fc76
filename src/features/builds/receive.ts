import { planLines } from "../../contract/plan-lines.ts";
import type { Inspection, RefChange, TreeLimits } from "../../ports/repositories.ts";
import type { DataDisk } from "../../ports/data-disk.ts";
import { diskUseOf, imagesOverLimit, type DiskLimits } from "../disk/disk.ts";
import { aheadOf } from "./ahead.ts";
import { buildPush, type FollowedPush, type PushVerdict } from "./follow-build.ts";
import { choosePreview, pushPreview, removeDeletedPreviews, type PreviewReceiving } from "./push-preview.ts";
import { agentBranch } from "../previews/previews.ts";
import { agentsPreview } from "./agents-preview.ts";
import { planSource, type Planning } from "./plan.ts";
import { hasWorkInProgress } from "./queries.ts";
import { deployRef } from "./rules.ts";
import { watchedButUntouched } from "./watched.ts";

/** A push as received from git, before any ref has moved. */
export interface Push extends FollowedPush {
  readonly refs: readonly RefChange[];
  /** Whether the pusher may delete and rewrite branches and tags. */
  readonly mayRewrite: boolean;
  /** The push only requests a plan (`-o plan`). */
  readonly isPlan: boolean;
  /** Aborts when git has ended or the right to push was lost; no branch may move afterwards. */
  readonly signal: AbortSignal;
}

export interface Receiving extends PreviewReceiving {
  readonly builder: Planning["builder"];
  readonly dataDisk: DataDisk;
  readonly treeLimits: TreeLimits;
  /** The installation's limits, for projects without their own. */
  readonly diskLimits: DiskLimits;
}

/**
 * Decides whether to accept a push. Builds, releases and switches the deploy branch while git waits, and streams the build's log as it is
 * stored; accepted means live. So is another branch, if the project wants a preview of it. All else is accepted without a deploy.
 */
export async function receivePush(
  receiving: Receiving,
  push: Push,
  onLine: (line: string) => void,
): Promise<PushVerdict> {
  const verdict = await decidePush(receiving, push, onLine);
  if (verdict.accepted) await removeDeletedPreviews(receiving, push, onLine);
  return verdict;
}

async function decidePush(receiving: Receiving, push: Push, onLine: (line: string) => void): Promise<PushVerdict> {
  const project = await receiving.db
    .selectFrom("project")
    .select(["slug", "deploy_branch", "deleted_at", "root", "watch", "previews", "preview_of", "git_branch", "agents"])
    .where(({ and }) => and({ org_id: push.org_id, id: push.project_id }))
    .executeTakeFirst();
  if (project === undefined || project.deleted_at !== null)
    return refuse(onLine, "The project is deleted.", "Undelete it first: `berth projects undelete <slug>`.");
  if (project.preview_of !== null)
    return refuse(
      onLine,
      "This project is a preview: it has no branches of its own.",
      `Push ${project.git_branch ?? "the branch"} to the project that the preview belongs to.`,
    );
  if ((await receiving.dataDisk.observe()).is_short)
    return refuse(
      onLine,
      "The platform's disk is full (storage_full).",
      "Ask the operator to free space, then push again.",
    );
  const target = deployRef(push.refs, project.deploy_branch);
  if (target.outcome === "refused") return refuse(onLine, target.summary, target.hint);
  const deployed = target.outcome === "deploy" ? target.ref : null;
  const [unfit, tooLarge] = await Promise.all([refuseRefs(receiving, push), inspectStored(receiving, push, deployed)]);
  const refused = unfit ?? tooLarge;
  if (refused !== null) return refuse(onLine, refused.summary, refused.hint);
  const deploys = target.outcome === "deploy" ? target.branch : project.deploy_branch;
  const isAgents = push.copies_data && project.agents === "preview";
  const previews = isAgents ? ["*"] : project.previews;
  const preview = choosePreview(push.refs, { ...project, previews, deploy_branch: deploys });
  if (target.outcome === "stored") return receiveStored(receiving, push, { ...target, preview }, onLine);
  const inspection = await inspect(receiving, push, target.ref.new);
  if (inspection.outcome === "refused") return refuse(onLine, inspection.summary, inspection.hint);
  const notes = [...target.notes, ...preview.notes, ...(inspection.notes ?? []).map((note) => `       ${note}`)];
  if (push.isPlan) return showPlan(receiving, push, { ...target, notes }, onLine);
  if (isAgents) {
    const branch = agentBranch(push.actor);
    const hint = `Push another branch, which becomes a preview: git push berth HEAD:${branch}. A person lets it go live: berth preview promote ${branch}`;
    return refuse(onLine, agentsPreview.error, hint);
  }
  const { ref, branch } = target;
  const pushed = { ...push, commit: ref.new, branch };
  const ahead = await aheadOf(receiving, pushed, pushed);
  if (ahead !== null) notes.push(`       ${ahead.text}`);
  const untouched = await watchedButUntouched(receiving, push, { ...project, branch, commit: ref.new });
  // A push in progress may go live first, and then git would no longer accept this one.
  if (untouched !== null && !(await hasWorkInProgress(receiving.db, push))) {
    for (const line of [`-----> Nothing to deploy: no file changed in ${untouched.join(", ")}`, ...notes]) onLine(line);
    return { accepted: true, build: null };
  }
  const { message, author } = inspection;
  return buildPush(receiving, push, { ref, branch, notes, message, author }, onLine);
}

/** Decides about a push without the branch that deploys: builds a preview, or stores it. */
async function receiveStored(
  receiving: Receiving,
  push: Push,
  { notes, preview }: { readonly notes: readonly string[]; readonly preview: ReturnType<typeof choosePreview> },
  onLine: (line: string) => void,
): Promise<PushVerdict> {
  const noRoom = await whyNotStored(receiving, push);
  if (noRoom !== null) return refuse(onLine, noRoom.error, noRoom.hint);
  const { ref } = preview;
  if (ref === null) for (const line of [...notes, ...preview.notes]) onLine(line);
  if (push.isPlan) {
    if (ref === null) onLine("-----> Nothing to deploy: this push does not include the branch that deploys");
    else onLine("-----> This push builds the branch into its preview; what deploys stays as it is");
    return refuse(onLine, wasPlan, "");
  }
  if (ref === null) return { accepted: true, build: null };
  const inspection = await inspect(receiving, push, ref.new);
  if (inspection.outcome === "refused") return refuse(onLine, inspection.summary, inspection.hint);
  const { message, author } = inspection;
  const lines = (inspection.notes ?? []).map((note) => `       ${note}`);
  const { refusal, ...verdict } = await pushPreview(receiving, push, { ref, message, author, notes: lines }, onLine);
  return refusal === undefined ? verdict : refuse(onLine, refusal.summary, refusal.hint);
}

/** Returns why git would refuse the refs after the build, or why this pusher may not change them; null when both are fine. */
async function refuseRefs({ repositories }: Receiving, { project_id, refs, quarantine, mayRewrite }: Push) {
  const problem = await repositories.checkRefs(project_id, refs, quarantine);
  if (problem !== null)
    return {
      summary: `git cannot store this push: ${problem}`,
      hint: "Compare with the branches that are there (git fetch, git ls-remote), then push again.",
    };
  if (mayRewrite) return null;
  for (const { name, old: from, new: to } of refs) {
    if (from === null || from === to) continue;
    const isContinued =
      to !== null &&
      name.startsWith("refs/heads/") &&
      (await repositories.countCommits(project_id, { from, to, quarantine }))?.removed === 0;
    if (!isContinued)
      return {
        summary: `A token in approval mode, and its SSH keys, cannot delete or rewrite ${name.replace(/^refs\/(?:heads|tags)\//, "")}.`,
        hint: "Push commits that continue the branch, or ask a person whose token is not in approval mode.",
      };
  }
  return null;
}

/** Returns why refs that are not deployed can't be stored: the project is over its limit. Null for deletions and what is deployed. */
async function whyNotStored({ db, diskLimits }: Receiving, { org_id, project_id, refs }: Push) {
  if (refs.every((ref) => ref.new === null)) return null;
  const { use, limits } = await diskUseOf(db, { org_id, project_id }, diskLimits);
  const bytes = use.images_bytes ?? 0;
  return bytes > limits.images_bytes ? imagesOverLimit(bytes, limits) : null;
}

const wasPlan = "This was only the plan: nothing was pushed or deployed. To deploy, push without `-o plan`.";

async function showPlan(
  receiving: Receiving,
  { org_id, project_id, quarantine, signal }: Push,
  { ref, branch, notes }: { ref: RefChange & { new: string }; branch: string; notes: readonly string[] },
  onLine: (line: string) => void,
): Promise<PushVerdict> {
  const source = { org_id, project_id, quarantine, signal, branch, commit: ref.new, isDraft: false };
  const plan = await planSource(receiving, source);
  for (const line of [...planLines(plan), ...notes]) onLine(line);
  return refuse(onLine, wasPlan, "");
}

function inspect({ repositories, treeLimits }: Receiving, push: Push, commit: string): Promise<Inspection> {
  return repositories.inspect(push.project_id, commit, push.quarantine, treeLimits);
}

// Inspecting one tree within its limits takes up to a second, and a push may have a thousand refs.
const inspectStoredMs = 60_000;

/** Returns why the stored, not deployed branches and tags are refused, or null. They have the same limits: they can be cloned. */
async function inspectStored(receiving: Receiving, push: Push, deployed: RefChange | null) {
  const untilMs = Date.now() + inspectStoredMs;
  const seen = new Set([deployed?.new]);
  for (const ref of push.refs) {
    if (ref.new === null || push.signal.aborted) continue;
    const commit = await commitOf(receiving, push, { name: ref.name, new: ref.new });
    if (commit === null || seen.has(commit)) continue;
    seen.add(commit);
    if (Date.now() > untilMs) return tooMany;
    const inspection = await inspect(receiving, push, commit);
    const name = ref.name.replace(/^refs\/(?:heads|tags)\//, "");
    if (inspection.outcome === "refused") return { ...inspection, summary: `${name}: ${inspection.summary}` };
  }
  return null;
}

const tooMany = {
  summary: "The push has too many branches and tags.",
  hint: "Push fewer of them at a time.",
};

/** Returns the commit that a ref points to. A tag may point to any object; returns null unless it is a commit, whose tree could be built. */
async function commitOf(receiving: Receiving, push: Push, ref: { name: string; new: string }): Promise<string | null> {
  if (!ref.name.startsWith("refs/tags/")) return ref.new;
  return receiving.repositories.peel(push.project_id, ref.new, push.quarantine);
}

function refuse(onLine: (line: string) => void, summary: string, hint: string): PushVerdict {
  onLine(` !     ${summary}`);
  if (hint !== "") onLine(` !     ${hint}`);
  return { accepted: false, build: null };
}
