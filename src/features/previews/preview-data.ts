import type { Tx } from "../../store/database.ts";
import { awaitOutcome } from "../await-outcome.ts";
import { branchUsedBy, extendBranch, requestBranch, type Asking, type RequestedBranch } from "../branches/branches.ts";
import { databaseOf, requestDatabase } from "../database/database.ts";
import type { ProjectKey, ProjectRow } from "../projects/projects.ts";

type Refused = Extract<RequestedBranch, { outcome: "refused" }>;

/** Thrown when a preview cannot have the data that its project wants for it, or could not get it. */
export class DataRefused extends Error {
  readonly code: Refused["code"] | "mask_failed" | "copy_too_large";
  readonly hint: string;

  constructor(
    code: DataRefused["code"],
    { error = "The database could not be copied.", hint = tryAgain }: Refused["text"],
  ) {
    super(error);
    this.code = code;
    this.hint = hint;
  }
}

const tryAgain =
  "Change what stands in the way, or give previews an empty database: `berth projects settings --preview-data empty`.";

interface Wanting extends ProjectKey {
  readonly parent: ProjectRow;
  /** The name of its branch. */
  readonly name: string;
  readonly expires_at: Date;
}

/** Requests a preview's data unless it has any: none without a database in the project, else an empty database or a branch. */
export async function requestData(
  previewing: Asking,
  tx: Tx,
  { parent, name, expires_at, ...key }: Wanting,
): Promise<void> {
  const { org_id, project_id } = key;
  if ((await databaseOf(tx, org_id, parent.id)) === undefined) return;
  if ((await databaseOf(tx, org_id, project_id)) !== undefined) return;
  const branch = await branchUsedBy(tx, key);
  if (branch !== undefined && branch.status !== "failed") return extendBranch(tx, key, expires_at);
  if (parent.preview_data === "empty") {
    await requestDatabase(tx, previewing.vault, { ...key, archived: false });
    return previewing.wakeups.send(tx, "databases", project_id);
  }
  const asked = await requestBranch(previewing, tx, {
    ...{ org_id, project_id: parent.id, name, at: null, used_by: project_id },
    isMasked: parent.preview_data === "masked",
    minutes: Math.ceil((expires_at.getTime() - previewing.clock.now().getTime()) / 60_000),
  });
  if (asked.outcome === "refused") throw new DataRefused(asked.code, asked.text);
}

const emptyMs = 60_000;
// As long as a build may take.
const copyMs = 15 * 60_000;

/** Waits until a preview's data can be used. A database that is not created in time has its reason in the project, and the build shows it. */
export function awaitData(
  { db, wakeups }: Pick<Asking, "db" | "wakeups">,
  { org_id, project_id }: ProjectKey,
  signal: AbortSignal,
): Promise<true> {
  const began = Date.now();
  return awaitOutcome(wakeups, { signal }, async () => {
    const own = await databaseOf(db, org_id, project_id);
    const branch = own === undefined ? await branchUsedBy(db, { org_id, project_id }) : undefined;
    if (branch?.status === "failed")
      throw new DataRefused("conflict", { error: branch.problem ?? "The branch failed." });
    const isComing = own?.status === "provisioning" || branch?.status === "copying";
    return !isComing || Date.now() - began > (own === undefined ? copyMs : emptyMs) || undefined;
  });
}
