import type { RefChange } from "../ports/repositories.ts";
import type { GitProject } from "./gate.ts";

/** More refs than a person pushes; push a mirror of a large repository in parts. */
const mostRefs = 1000;
const noObject = /^0+$/;

/** Parses the input of git's receive hooks: `<old> <new> <name>` per line. Returns null for anything else. */
export function parseRefUpdates(text: string): RefChange[] | null {
  const refs: RefChange[] = [];
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const match = /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) (refs\/\S+)$/.exec(line);
    if (!match) return null;
    const [, old, to, name] = match as unknown as [string, string, string, string];
    refs.push({ name, old: objectOrNull(old), new: objectOrNull(to) });
  }
  return refs;
}

/** Returns, as a sentence, why a push is refused regardless of its content; null if it may be decided. */
export function refuseRefs(project: GitProject, refs: readonly RefChange[]): string | null {
  if (refs.length === 0) return "The push names no branch.";
  if (refs.length > mostRefs) return `The push has more than ${mostRefs} branches and tags; push them in parts.`;
  for (const ref of refs) {
    if (!/^refs\/(?:heads|tags)\/./.test(ref.name)) return `Only branches and tags can be pushed, not ${ref.name}.`;
    if (ref.new === null && project.deploy_branch !== null && ref.name === `refs/heads/${project.deploy_branch}`)
      return `Branch ${project.deploy_branch} is what deploys; it cannot be deleted.`;
  }
  return null;
}

function objectOrNull(oid: string): string | null {
  return noObject.test(oid) ? null : oid;
}
