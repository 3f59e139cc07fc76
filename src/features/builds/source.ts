import { limits as standard } from "../../contract/limits.ts";
import type { NewCommit, Repositories, Written } from "../../ports/repositories.ts";
import type { Context, HandlerPlatform, RefusalText } from "../context.ts";
import { aheadText } from "../../contract/ahead.ts";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { activeOf, deployedCommit } from "../deployments/deployments.ts";
import { aheadOf } from "./ahead.ts";
import { requireRoomForBuild } from "../disk/disk.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { planSource, type PlannedSource } from "./plan.ts";
import { hasDeployed, hasWorkInProgress } from "./queries.ts";
import { keepSource } from "./keep-source.ts";
import { requestBuild } from "./request.ts";

/** The context of the routes that accept files. */
export type UploadContext = Pick<Context<"builds.upload">, "platform" | "project" | "caller" | "note" | "tx"> & {
  readonly fail: (code: UploadRefusal, more?: RefusalText) => never;
};
type UploadRefusal = "forbidden" | "storage_full" | "payload_too_large" | "invalid_request";

type PlanContext = Pick<Context<"builds.plan">, "platform" | "project" | "caller" | "fail">;

/** Pins the last commit that came without git, whether or not its build succeeded, so that the next change can fix a failed one. */
const uploadPin = "upload";

/** The base for a project's next source: the branch, its head, the commit whose files a change starts from, and the next commit's parent. */
interface Place {
  readonly branch: string;
  readonly head: string | null;
  readonly base: string | null;
  readonly parent: string | null;
}

/** Determines the base for the next source: the last upload while no other commit moved the branch, also while it is in progress. */
export async function placeOf(
  { db, ports }: { readonly db: Db; readonly ports: Pick<HandlerPlatform["ports"], "repositories"> },
  project: { readonly org_id: string; readonly id: string; readonly deploy_branch: string | null },
): Promise<Place> {
  const { repositories } = ports;
  const branch = project.deploy_branch ?? "main";
  await repositories.ensure(project.id, project.deploy_branch !== null);
  const deployed = await deployedCommit(db, project.org_id, project.id, branch);
  const stored = await repositories.resolve(project.id, `refs/heads/${branch}`);
  // A deployment that has just gone live moves its branch a moment later, so the branch may still be at the old commit.
  const head = deployed?.old_commit === stored ? deployed.commit : stored;
  const upload = await repositories.pinned(project.id, uploadPin);
  if (upload === null || upload === head || !(await continues(repositories, project.id, head, upload)))
    return { branch, head, base: head, parent: head };
  const isComing = await hasWorkInProgress(db, { org_id: project.org_id, project_id: project.id }, upload);
  return { branch, head, base: upload, parent: isComing ? upload : head };
}

export async function continues(repositories: Repositories, projectId: string, from: string | null, to: string) {
  if (from === null) return true;
  return (await repositories.countCommits(projectId, { from, to, quarantine: null }))?.removed === 0;
}

/** Refuses an upload that cannot succeed: this machine must not run the organization's code, or the disk is full. */
export async function requireUpload(ctx: UploadContext): Promise<void> {
  if (!ctx.platform.admitsCode({ slug: ctx.caller.org_slug }))
    return ctx.fail("forbidden", {
      error: "This machine cannot isolate applications, so it runs the code of its first organization only.",
      hint: "Ask the platform's operator to set up isolation.",
    });
  await requireRoomForBuild(ctx);
  ctx.note({ detail: await releaseReach(ctx.tx, ctx.project.key) });
}

/** Returns the release command of what serves and what it may reach, for a `dry_run`; the deployed source may name another. */
export async function releaseReach(
  tx: Tx,
  { org_id, project_id }: ProjectKey,
): Promise<Readonly<Record<string, unknown>>> {
  const release_command = (await activeOf(tx, org_id, project_id))?.image.release_command ?? null;
  return release_command === null ? {} : { release_command, release_reaches: ["database", "storage"] };
}

export interface Uploaded {
  readonly content: NewCommit["content"];
  readonly removed: readonly string[];
  /** Files that are not named stay unchanged. */
  readonly keepsOthers: boolean;
  readonly message: string;
  /** Chooses the base, or refuses it; by default the newest source. */
  readonly chooseBase?: (newest: string | null) => Promise<string | null>;
  /** The runtime that the image must be for; the project's runtime by default. */
  readonly runtime?: string;
  /** The files only serve a rehearsal, and the next change does not begin at them. */
  readonly rehearse_only?: boolean;
}

/** Returns what a deploy of a branch or commit of the repository would do; `ref` defaults to the newest source. */
export async function planRef(ctx: PlanContext, ref: string | undefined, signal: AbortSignal) {
  const { repositories } = ctx.platform.ports;
  const { branch, base } = await placeOf(ctx.platform, ctx.project);
  const commit = ref === undefined ? base : await commitOf(repositories, ctx.project.id, ref);
  if (commit === null)
    return ctx.fail("nothing_to_deploy", {
      error:
        ref === undefined ? "The project has no source code yet." : `The repository has no branch or commit ${ref}.`,
    });
  const isBranch = ref !== undefined && ref !== commit;
  return planIn(ctx, { commit, branch: isBranch ? ref : branch, quarantine: null, isDraft: false, signal });
}

async function commitOf(repositories: Repositories, projectId: string, ref: string): Promise<string | null> {
  if (/^[0-9a-f]{40}$/.test(ref)) return repositories.peel(projectId, ref, null);
  const isName = /^[A-Za-z0-9_][\w./-]*$/.test(ref) && !ref.includes("..");
  return isName ? repositories.resolve(projectId, `refs/heads/${ref}`) : null;
}

/** Returns what a deploy of these files would do; the files are not kept. */
export async function planFiles(ctx: PlanContext, sent: Omit<Uploaded, "message">, signal: AbortSignal) {
  const { platform, project, caller } = ctx;
  const { repositories } = platform.ports;
  const { parent, base, branch } = await placeOf(platform, project);
  const limits = treeLimits(platform);
  const { content, removed } = sent;
  const commit = { parent, base: sent.keepsOthers ? base : null, removed, content, message: "Plan", limits };
  const written = requireWritten(ctx, await repositories.write(project.id, { ...commit, author: caller.token_name }));
  const draft = { commit: written.commit, quarantine: written.quarantine };
  try {
    const inspection = await repositories.inspect(project.id, draft.commit, draft.quarantine, limits);
    if (inspection.outcome === "refused")
      return ctx.fail("payload_too_large", { error: inspection.summary, hint: inspection.hint, foreign: true });
    return await planIn(ctx, { ...draft, branch, isDraft: true, signal });
  } finally {
    await repositories.discard(project.id, draft.quarantine);
  }
}

function planIn({ platform, project }: PlanContext, source: Omit<PlannedSource, keyof ProjectKey>) {
  const { repositories, builder } = platform.ports;
  return planSource({ db: platform.db, repositories, builder }, { ...project.key, ...source });
}

/** Returns the commit of the deployment that serves (`live`), or the given one if a deployment has it; undefined when there is none. */
export async function deployedAs(
  { platform, project }: Pick<PlanContext, "platform" | "project">,
  commit: string,
): Promise<string | undefined> {
  if (commit === "live") return (await activeOf(platform.db, project.org_id, project.id))?.commit;
  return (await hasDeployed(platform.db, project.key, commit)) ? commit : undefined;
}

// One after the other, so that of two changes with the same `expected_commit` only the first is accepted.
const runExclusive = createKeyedMutex();

/** Creates a commit from files and queues its build, after the same checks as for a push. */
export function buildUpload(ctx: UploadContext, uploaded: Uploaded) {
  return runExclusive(ctx.project.id, () => buildInTurn(ctx, uploaded));
}

async function buildInTurn(ctx: UploadContext, uploaded: Uploaded) {
  const { content, removed, keepsOthers, message, runtime = null, rehearse_only = false } = uploaded;
  const { platform, project, caller } = ctx;
  const { repositories, logStore } = platform.ports;
  const place = await placeOf(platform, project);
  const { chooseBase = async () => place.base } = uploaded;
  const base = keepsOthers ? await chooseBase(place.base) : null;
  const ahead =
    keepsOthers && base === place.base
      ? await aheadOf({ db: platform.db, repositories }, { ...project.key, branch: place.branch })
      : null;
  const limits = treeLimits(platform);
  const author = caller.token_name;
  const commit = { parent: place.parent, base, removed, content, message, author, limits };
  const written = requireWritten(ctx, await repositories.write(project.id, commit));
  const source = {
    commit: written.commit,
    quarantine: written.quarantine,
    pin: rehearse_only ? null : uploadPin,
    limits,
  };
  const kept = await keepSource({ repositories, logStore }, project.key, source);
  if (kept.outcome === "refused")
    return ctx.fail("payload_too_large", { error: kept.summary, hint: kept.hint, foreign: true });
  const { id, message: subject } = kept;
  const build = { id, ...project.key, commit: written.commit, branch: place.branch } as const;
  const asked = {
    origin: rehearse_only ? "push" : "upload",
    rehearse_only,
    message: subject,
    author: kept.author,
    old_commit: place.head,
    requested_by: caller.token_name,
    copies_data: caller.approval_mode,
    token_id: caller.token_id,
    lease_owner: null,
    runtime,
  } as const;
  await platform.db.transaction().execute((tx) => requestBuild(tx, platform.wakeups, { ...build, ...asked }));
  ctx.note({ target: id, detail: { commit: written.commit } });
  return {
    ...{ build_id: id, commit: written.commit, base },
    ahead: ahead && { ...ahead, text: aheadText(ahead, "this deploy") },
  };
}

/** Returns the commit at which a change begins; refuses one that expects another commit. */
export async function commitToChange(
  ctx: Pick<Context<"builds.change">, "platform" | "project" | "fail">,
  { expected, startsAtLive }: { readonly expected: string | undefined; readonly startsAtLive: boolean },
  newest: string | null,
): Promise<string | null> {
  const live = startsAtLive ? await deployedAs(ctx, "live") : undefined;
  if (startsAtLive && live === undefined)
    return ctx.fail("nothing_to_deploy", { error: "Nothing serves, so no change can begin at it." });
  const base = live ?? newest;
  if (expected === undefined || expected === base) return base;
  return ctx.fail("branch_moved", {
    error: `The change expects commit ${expected}, but ${startsAtLive ? "what serves" : "the newest source"} is ${base ?? "empty"}.`,
    details: [{ path: "expected_commit", message: `is ${expected}; the present commit is ${base ?? "none"}` }],
  });
}

type FailContext = { readonly fail: (code: "payload_too_large" | "invalid_request", more: RefusalText) => never };

function requireWritten(ctx: FailContext, written: Written): Extract<Written, { outcome: "written" }> {
  if (written.outcome === "written") return written;
  return ctx.fail(written.code === "too_large" ? "payload_too_large" : "invalid_request", {
    error: written.summary,
    foreign: true,
  });
}

function treeLimits({ limits = {} }: HandlerPlatform) {
  const { tree_entries, tree_bytes, pack_bytes } = { ...standard, ...limits };
  return { entries: tree_entries, bytes: tree_bytes, archiveBytes: pack_bytes };
}

export const givenFiles = (files: readonly { readonly path: string; readonly text: string }[]) => ({
  files: files.map(({ text, ...file }) => ({ ...file, content: Buffer.from(text) })),
});
