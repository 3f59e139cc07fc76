import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { quoted } from "../../kit/quoted.ts";
import { activeOf } from "../deployments/deployments.ts";
import { copyToPreview, openPreview, type Preview } from "../previews/previews.ts";
import { livingProject } from "../projects/projects.ts";
import { buildUpload, continues, placeOf, type Uploaded, type UploadContext } from "./source.ts";
import type { Context, NamedProject } from "../context.ts";

interface Wanted {
  readonly branch: string;
  /** The change begins at what the project serves. */
  readonly startsAtLive: boolean;
}

type Uploading = UploadContext & Pick<Context<"builds.upload">, "fail">;

/** Builds files into the preview of a branch, which is made if there is none; what the project serves stays. */
export async function uploadToPreview(ctx: Uploading, uploaded: Uploaded, wanted: Wanted, signal: AbortSignal) {
  const { branch, startsAtLive } = wanted;
  const { project, live, isBehind } = await startInTurn(ctx.project.id, () => start(ctx, wanted, signal));
  const chooseBase = async (newest: string | null) => {
    const base = startsAtLive ? live : newest;
    return uploaded.chooseBase === undefined ? base : uploaded.chooseBase(base);
  };
  const made = await buildUpload({ ...ctx, project }, { ...uploaded, chooseBase });
  ctx.note({ target: branch, detail: { commit: made.commit } });
  const url = ctx.platform.addresses.appUrl(project.hostname);
  const preview = { slug: project.slug, branch, url, text: textOf({ of: ctx.project.slug, branch, url, isBehind }) };
  return { ...made, ahead: null, preview };
}

function textOf({ of, branch, url, isBehind }: { of: string; branch: string; url: string; isBehind: boolean }): string {
  const behind = `${of} has moved on since this preview began, which going live would undo: \`base: live\` begins the next change at what serves.`;
  return [
    `The change goes to the preview of ${branch}, ${url}; ${of} serves what it served.`,
    ...(isBehind ? [behind] : []),
    `To let it go live: \`berth preview promote ${quoted(branch)} -p ${of}\`, which waits for a person if the token is in approval mode.`,
  ].join(" ");
}

interface Started {
  readonly project: NamedProject;
  /** The commit that the project serves. */
  readonly live: string | null;
  /** Whether the preview lacks commits that the project serves. */
  readonly isBehind: boolean;
}

// Two first changes at once would both give the new preview its source.
const startInTurn = createKeyedMutex();

/** Opens the preview. It begins with the project's source, and again once the project serves all that was changed in it. */
async function start(ctx: Uploading, { branch, startsAtLive }: Wanted, signal: AbortSignal): Promise<Started> {
  const { platform, project: parent } = ctx;
  const live = (await activeOf(platform.db, parent.org_id, parent.id))?.commit ?? null;
  if (startsAtLive && live === null)
    return ctx.fail("nothing_to_deploy", { error: "Nothing serves, so no change can begin at it." });
  const previewing = { ...platform, appsDomain: platform.addresses.appsDomain, previews: platform.settings.previews };
  const fill = (preview: Preview) => giveSource(ctx, preview, { branch, startsAtLive, live });
  const opened = await openPreview(previewing, { ...parent.key, branch }, { signal, fill });
  if (opened.outcome === "refused") return ctx.fail(opened.code, { error: opened.summary, hint: opened.hint });
  return opened.filled;
}

async function giveSource(
  ctx: Uploading,
  preview: Preview,
  { branch, startsAtLive, live }: Wanted & Pick<Started, "live">,
): Promise<Started> {
  const { platform, project: parent } = ctx;
  const { repositories } = platform.ports;
  const row = await livingProject(platform.db, parent.org_id, preview.slug);
  const project = { ...row, key: { org_id: preview.org_id, project_id: preview.project_id } };
  await repositories.ensure(project.id);
  const { base } = await placeOf(platform, project);
  const isDone = base !== null && live !== null && (await hasIn(ctx, parent.id, base, live));
  const first = startsAtLive || isDone ? live : base === null ? await firstCommit(ctx, branch) : null;
  if (first !== null)
    await copyToPreview(repositories, preview, { from: parent.id, branch, commit: first, quarantine: null });
  const isBehind = first === null && live !== null && base !== null && !(await hasIn(ctx, project.id, live, base));
  return { project, live, isBehind };
}

/** Returns whether a commit of a repository is among those before another one. */
async function hasIn({ platform }: Uploading, projectId: string, commit: string, head: string): Promise<boolean> {
  const { repositories } = platform.ports;
  if ((await repositories.peel(projectId, commit, null)) === null) return false;
  return continues(repositories, projectId, commit, head);
}

async function firstCommit({ platform, project }: Uploading, branch: string): Promise<string | null> {
  const { base } = await placeOf(platform, project);
  return (await platform.ports.repositories.resolve(project.id, `refs/heads/${branch}`)) ?? base;
}
