import { createGlob } from "../../kit/glob.ts";
import type { RefChange } from "../../ports/repositories.ts";

// A fraction of a second, in which the control plane does nothing else.
const mostSteps = 5_000_000;

/**
 * Returns whether one of the paths matches one of the patterns; a pattern without a wildcard matches the file, or everything in the folder.
 * Also returns true once matching has taken too long: a deploy too many is better than one that never comes.
 */
export function hasWatched(paths: readonly string[], patterns: readonly string[]): boolean {
  const watched = patterns.map((pattern) => {
    const plain = pattern.replace(/^\.?\/+|\/+$/g, "");
    return { plain, glob: createGlob(plain, "braces") };
  });
  const work = { steps: 0 };
  return paths.some((path) =>
    watched.some(({ plain, glob }) => {
      work.steps += 1;
      if (work.steps > mostSteps || path === plain || path.startsWith(`${plain}/`)) return true;
      return glob.matches(path, work);
    }),
  );
}

/** Returns the patterns of paths whose changes trigger a deploy: the project's setting, else the file's, else the folder; null: every change. */
export function watchedPatterns(
  setting: readonly string[] | null,
  file: { readonly watch?: readonly string[] | undefined } | null,
  root: string,
): string[] | null {
  const patterns = setting ?? file?.watch ?? (root === "" ? [] : [`${root}/**`]);
  return patterns.length === 0 ? null : [...patterns];
}

/** Returns the variable names assigned in a file like .env.example. */
export function namesInExample(text: string): string[] {
  const names = [...text.matchAll(/^[ \t]*(?:export[ \t]+)?([A-Za-z_]\w{0,127})[ \t]*=/gm)];
  return [...new Set(names.map(([, name = ""]) => name))].slice(0, 200);
}

interface KnownRef extends RefChange {
  readonly new: string;
}

export type DeployDecision =
  | { readonly outcome: "deploy"; readonly ref: KnownRef; readonly branch: string; readonly notes: readonly string[] }
  | { readonly outcome: "stored"; readonly notes: readonly string[] }
  | { readonly outcome: "refused"; readonly summary: string; readonly hint: string };

const heads = "refs/heads/";
const tags = "refs/tags/";

/** Chooses the pushed ref to deploy: the first branch ever deployed; before that `main`, else `master`, else the push's first branch. */
export function deployRef(refs: readonly RefChange[], deployBranch: string | null): DeployDecision {
  const branches = refs.filter((ref) => ref.name.startsWith(heads));
  const chosen = deployBranch ?? firstBranch(branches);
  const ref = branches.find((each) => each.name === heads + chosen);
  const others = branches
    .filter((each) => each !== ref && each.new !== null)
    .map((each) => each.name.slice(heads.length));
  const notes = others.map(
    (branch) =>
      `       ${branch} was stored but not deployed: only ${chosen ?? "main"} deploys. To deploy it: git push <remote> ${branch}:${chosen ?? "main"}`,
  );
  if (ref === undefined) return { outcome: "stored", notes: [...notes, ...tagNotes(refs, chosen ?? "main")] };
  if (ref.new === null) {
    return {
      outcome: "refused",
      summary: `${chosen} is the branch that deploys, so it cannot be deleted.`,
      hint: "Delete the project to stop serving it.",
    };
  }
  return { outcome: "deploy", ref: { ...ref, new: ref.new }, branch: chosen as string, notes };
}

/** Returns the notes for a push that brings tags and deploys nothing. */
function tagNotes(refs: readonly RefChange[], branch: string): readonly string[] {
  const names = refs.flatMap(({ name, new: to }) =>
    name.startsWith(tags) && to !== null ? [name.slice(tags.length)] : [],
  );
  return names.length === 0
    ? []
    : [
        `       ${names.slice(0, 5).join(", ")}${names.length > 5 ? " …" : ""}: stored as a tag; tags do not deploy: git push <remote> ${branch}`,
      ];
}

function firstBranch(branches: readonly RefChange[]): string | null {
  const names = branches.filter((ref) => ref.new !== null).map((ref) => ref.name.slice(heads.length));
  return names.find((name) => name === "main") ?? names.find((name) => name === "master") ?? names[0] ?? null;
}
