import { newId } from "../../kit/ids.ts";
import type { Quarantine, TreeLimits } from "../../ports/repositories.ts";
import type { HandlerPlatform } from "../context.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { addToLog } from "./follow-build.ts";

/** Checks a commit that came without a push as strictly as a pushed one, pins it, and creates its build's id. Discards the quarantine. */
export async function keepSource(
  { repositories, logStore }: Pick<HandlerPlatform["ports"], "repositories" | "logStore">,
  { project_id }: ProjectKey,
  { commit, quarantine, pin, limits }: QuarantinedSource,
): Promise<KeptSource> {
  const id = newId("bld");
  try {
    const inspection = await repositories.inspect(project_id, commit, quarantine, limits);
    if (inspection.outcome === "refused") return inspection;
    await repositories.pin(project_id, pin ?? id, commit, quarantine);
    const notes = (inspection.notes ?? []).map((note) => `       ${note}`);
    await addToLog(logStore, id, notes, () => {});
    return { outcome: "kept", id, message: inspection.message, author: inspection.author };
  } finally {
    await repositories.discard(project_id, quarantine);
  }
}

/** A commit in a quarantine, and the name of the pin that keeps it; null: the build's own. */
interface QuarantinedSource {
  readonly commit: string;
  readonly quarantine: Quarantine;
  readonly pin: string | null;
  readonly limits: TreeLimits;
}

type KeptSource =
  | { readonly outcome: "kept"; readonly id: string; readonly message: string; readonly author: string }
  | { readonly outcome: "refused"; readonly summary: string; readonly hint: string };
