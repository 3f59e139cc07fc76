import { limits } from "../../contract/limits.ts";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import { restorableAt } from "../backups/backups.ts";
import type { HandlerPlatform, RefusalText } from "../context.ts";
import { databaseOf, newPassword } from "../database/database.ts";
import { activeOf } from "../deployments/deployments.ts";
import { lockProject, type ProjectKey } from "../projects/projects.ts";
import { branchUsedBy, countBranches, insertBranch } from "./queries.ts";

export {
  branchUsedBy,
  deleteBranch,
  endBranch,
  extendBranch,
  releaseBranch,
  runningBranches,
  saveBranch,
  takeBranch,
  unknownBranches,
  updateBranch,
  type TakenBranch,
} from "./queries.ts";

export interface WantedBranch extends ProjectKey {
  readonly name: string;
  /** The moment that it shows; null: now. */
  readonly at: Date | null;
  /** Whether the mask of the deployed commit changes it before it can be reached. */
  readonly isMasked: boolean;
  readonly minutes?: number | undefined;
  /** The project whose deployments use the branch as their database, with which it ends. Null: people use it, until it expires. */
  readonly used_by: string | null;
}

export type Asking = Pick<HandlerPlatform, "db" | "vault" | "clock" | "wakeups"> & {
  readonly ports: Pick<HandlerPlatform["ports"], "postgresHost">;
  readonly settings: Pick<HandlerPlatform["settings"], "branches">;
};

export type RequestedBranch =
  | { readonly outcome: "requested"; readonly id: string }
  | {
      readonly outcome: "refused";
      readonly code: "no_database" | "conflict" | "branch_limit" | "branches_unavailable" | "target_outside_window";
      readonly text: RefusalText;
    };

/** Requests a branch, which the task `branches` makes. Deployments of `used_by`, which must have no database of its own, then use it. */
export async function requestBranch(platform: Asking, tx: Tx, wanted: WantedBranch): Promise<RequestedBranch> {
  const { org_id, project_id, name, at, used_by } = wanted;
  await lockProject(tx, wanted);
  const row = await databaseOf(tx, org_id, project_id);
  if (row === undefined) return refused("no_database", {});
  if (row.ready_at === null)
    return refused("conflict", { error: "The database is still being created. Try again in a moment." });
  if (platform.ports.postgresHost.history(row.id) === null) return refused("branches_unavailable", {});
  const outside = at === null ? undefined : await restorableAt(tx, wanted, at);
  if (outside !== undefined) return refused("target_outside_window", { error: outside });
  const commit = wanted.isMasked ? (await activeOf(tx, org_id, project_id))?.commit : null;
  if (commit === undefined)
    return refused("conflict", { error: "Nothing is deployed yet, so no commit says how to mask the branch." });
  const { branches } = platform.settings;
  const minutes = wanted.minutes ?? branches.minutes;
  const full = tooMany(await countBranches(tx, wanted), {
    ofProject: used_by === null,
    perPlatform: branches.perPlatform,
  });
  if (full !== undefined) return refused("branch_limit", { error: full });
  const id = newId("dbb");
  const branch = {
    ...{ id, org_id, project_id, used_by, name, mask_commit: commit, shows: at?.toISOString() ?? null },
    ...{ role_name: row.role_name, database_name: row.database_name },
    sealed_password: newPassword(platform.vault, project_id),
    expires_at: new Date(platform.clock.now().getTime() + minutes * 60_000).toISOString(),
  };
  if (!(await insertBranch(tx, branch)))
    return refused("conflict", {
      error: `The project already has a branch ${name}.`,
      hint: "Choose another name, or delete that one first.",
    });
  await platform.wakeups.send(tx, "branches", id);
  return { outcome: "requested", id };
}

function refused(code: Extract<RequestedBranch, { outcome: "refused" }>["code"], text: RefusalText): RequestedBranch {
  return { outcome: "refused", code, text };
}

function tooMany(
  have: { readonly project: number; readonly platform: number },
  { ofProject, perPlatform }: { readonly ofProject: boolean; readonly perPlatform: number },
): string | undefined {
  if (ofProject && have.project >= limits.branches_per_project)
    return `The project already has ${have.project} branches.`;
  return have.platform >= perPlatform ? `The platform already has ${perPlatform} branches of databases.` : undefined;
}

/** Returns whether a project's applications get the address of a database: its own one, or the branch that it uses. */
export async function hasDatabaseAddress(db: Db | Tx, key: ProjectKey): Promise<boolean> {
  return (
    (await databaseOf(db, key.org_id, key.project_id)) !== undefined || (await branchUsedBy(db, key)) !== undefined
  );
}
