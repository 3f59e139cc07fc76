import { quoted } from "../../kit/quoted.ts";
import type { RefChange, Repositories } from "../../ports/repositories.ts";
import {
  copyToPreview,
  hasPreviews,
  isPinned,
  openPreview,
  removePreview,
  selectPreview,
  type Preview,
  type Previewing,
} from "../previews/previews.ts";
import { shownEnd, type ProjectRow } from "../projects/projects.ts";
import { buildPush, type FollowedPush, type Following, type PushVerdict } from "./follow-build.ts";

export interface PreviewReceiving extends Following, Previewing {
  readonly repositories: Repositories;
  readonly appUrl: (hostname: string) => string;
}

type Pushed = FollowedPush & { readonly refs: readonly RefChange[] };

const heads = "refs/heads/";

/** Builds a pushed branch into its preview while git waits. The preview's earlier version serves until the new one is live. */
export async function pushPreview(
  receiving: PreviewReceiving,
  push: FollowedPush,
  target: {
    readonly ref: RefChange & { readonly new: string };
    readonly message: string;
    readonly author: string;
    readonly notes: readonly string[];
  },
  onLine: (line: string) => void,
): Promise<PushVerdict & { readonly refusal?: { readonly summary: string; readonly hint: string } }> {
  const { org_id, project_id, quarantine, signal } = push;
  const { ref, message, author } = target;
  const branch = ref.name.slice(heads.length);
  const source = { from: project_id, branch, commit: ref.new, quarantine };
  const fill = (preview: Preview) => copyToPreview(receiving.repositories, preview, source);
  const opened = await openPreview(receiving, { org_id, project_id, branch }, { signal, fill });
  if (opened.outcome === "refused") return { accepted: false, build: null, refusal: opened };
  const { preview, filled } = opened;
  const url = receiving.appUrl(preview.hostname);
  const end = shownEnd(preview.expires_at.toISOString());
  const until = end === null ? "pinned: it stays" : `until ${end.slice(0, 16).replace("T", " ")} UTC`;
  const notes = [`-----> Preview of ${branch}: ${url}`, `       ${until}, project ${preview.slug}`, ...target.notes];
  const own = { org_id, project_id: preview.project_id, quarantine: null, copies_data: false };
  const built = { ref: { ...ref, old: filled.old_commit }, branch, message, author, notes };
  const { accepted, build } = await buildPush(receiving, { ...push, ...own }, built, onLine);
  // The preview's own branch is at the commit already.
  if (accepted && build !== null) await receiving.repositories.unpin(preview.project_id, build.id);
  return { accepted, build: null };
}

/** The one branch of a push that gets a preview; lines for those that do not. */
interface PreviewChoice {
  readonly ref: (RefChange & { readonly new: string }) | null;
  readonly notes: readonly string[];
}

/** Chooses the branch of a push to preview: the only one that changes, if previews of it are wanted. One reason refuses a push, not two. */
export function choosePreview(
  refs: readonly RefChange[],
  { slug, previews, deploy_branch }: Pick<ProjectRow, "slug" | "previews" | "deploy_branch">,
): PreviewChoice {
  const branches = refs.flatMap((ref) =>
    ref.name.startsWith(heads) && ref.new !== null ? [{ ...ref, new: ref.new }] : [],
  );
  const others = branches.filter(({ name }) => name !== heads + deploy_branch);
  const wanted = others.filter(({ name }) => hasPreviews(previews, name.slice(heads.length)));
  const [ref] = wanted;
  if (previews === null && others.length > 0 && others.length === branches.length)
    return {
      ref: null,
      notes: [`       To give branches a URL of their own: berth projects settings ${slug} --previews '*'`],
    };
  if (ref === undefined) return { ref: null, notes: [] };
  if (branches.length === 1) return { ref, notes: [] };
  const names = wanted.slice(0, 5).map(({ name }) => name.slice(heads.length));
  const notes = names.map(
    (name) => `       ${name} got no preview, as this push has other branches: berth preview create ${quoted(name)}`,
  );
  return { ref: null, notes };
}

export async function removeDeletedPreviews(
  { db, wakeups }: Previewing,
  { org_id, project_id, actor, refs }: Pushed,
  onLine: (line: string) => void,
): Promise<void> {
  for (const ref of refs) {
    if (ref.new !== null || !ref.name.startsWith(heads)) continue;
    const branch = ref.name.slice(heads.length);
    const found = await selectPreview(db, { org_id, project_id }, branch);
    if (found === undefined) continue;
    if (isPinned(found)) {
      onLine(`-----> The preview of ${branch} is pinned and stays: berth preview delete ${quoted(branch)}`);
      continue;
    }
    const preview = { org_id, project_id: found.id, requested_by: actor };
    await db.transaction().execute((tx) => removePreview(tx, wakeups, preview));
    onLine(`-----> The preview of ${branch} is being removed, with its data`);
  }
}
