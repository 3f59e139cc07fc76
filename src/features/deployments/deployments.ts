import { newId } from "../../kit/ids.ts";
import type { Image } from "../../ports/builder.ts";
import type { Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { variablesOf } from "../env/env.ts";
import {
  activeOf,
  clearVariablesMark,
  comingDeployment,
  deployedCommit,
  goodBefore,
  insertDeployment,
  lockLivingProject,
  numberOf,
  type DeploymentRow,
} from "./queries.ts";

export {
  activate,
  endSwitch,
  failDeployment,
  projectsToRestart,
  takeDeployment,
  type TakenDeployment,
} from "./queries.ts";

export { giveUpImages, projectsWithImages } from "./images.ts";
export {
  markCrashed,
  markReady,
  markWithdrawn,
  nextRouteVersion,
  pushedDeployments,
  readyReplicas,
  replicasOf,
  servedProjects,
  workloadRows,
  type ReplicaRow,
  type WorkloadRow,
} from "./serving.ts";

/** What making a deployment needs of the world. */
export interface Making {
  readonly vault: Vault;
  readonly wakeups: Wakeups;
}

/** A made deployment, or why there can be none now. */
export type Made =
  | { readonly outcome: "made"; readonly id: string; readonly number: number }
  | { readonly outcome: "in_progress" }
  | { readonly outcome: "project_deleted" }
  | { readonly outcome: "branch_moved" }
  | { readonly outcome: "nothing" };

interface Source {
  readonly org_id: string;
  readonly project_id: string;
  readonly build_id: string;
  readonly commit: string;
  readonly image: Image;
}

interface BuiltSource extends Source {
  readonly trigger: "push" | "redeploy";
  readonly branch: string;
  readonly old_commit: string | null;
  /** The control plane that a pusher waits at. */
  readonly owner: string | null;
}

/** Deploys what a build made, with the settings and variables of this moment. */
export async function deployBuild(making: Making, tx: Tx, source: BuiltSource): Promise<Made> {
  const project = await lockLivingProject(tx, source.org_id, source.project_id);
  if (project === undefined) return { outcome: "project_deleted" };
  if (await comingDeployment(tx, source.org_id, source.project_id)) return { outcome: "in_progress" };
  if (await hasMoved(tx, source)) return { outcome: "branch_moved" };
  await clearVariablesMark(tx, source.project_id);
  const variables = await variablesOf(tx, making.vault, source);
  return make(making, tx, {
    ...pick(source),
    trigger: source.trigger,
    port: project.port,
    health_path: project.health_path,
    variables,
    rolled_back_from: null,
    restored_from: null,
    lease_owner: source.owner,
  });
}

/**
 * Of two pushes that both began at one commit, git moves the branch for the first alone. The second must not go live, because
 * the branch would never say so.
 */
async function hasMoved(tx: Tx, source: BuiltSource): Promise<boolean> {
  if (source.trigger !== "push") return false;
  const commit = await deployedCommit(tx, source.org_id, source.project_id, source.branch);
  return commit !== undefined && commit !== source.old_commit;
}

/** Starts the active image anew with the variables of this moment. */
export async function restartWithVariables(
  making: Making,
  tx: Tx,
  project: { org_id: string; project_id: string },
): Promise<Made> {
  const { org_id, project_id } = project;
  const locked = await lockLivingProject(tx, org_id, project_id);
  if (locked === undefined) return { outcome: "project_deleted" };
  const active = await activeOf(tx, org_id, project_id);
  if (active === undefined) return { outcome: "nothing" };
  if (await comingDeployment(tx, org_id, project_id)) return { outcome: "in_progress" };
  await clearVariablesMark(tx, project_id);
  const variables = await variablesOf(tx, making.vault, project);
  return make(making, tx, {
    ...pick({ ...project, ...active }),
    trigger: "variables",
    port: active.port,
    health_path: active.health_path,
    variables,
    rolled_back_from: null,
    restored_from: null,
    lease_owner: null,
  });
}

/**
 * Deploys what served before, image and variables. What a rollback brought back stands where it stood: a second rollback goes
 * one further back, and never to what the first one left behind.
 */
export async function rollBack(making: Making, tx: Tx, project: { org_id: string; project_id: string }): Promise<Made> {
  const { org_id, project_id } = project;
  const locked = await lockLivingProject(tx, org_id, project_id);
  if (locked === undefined) return { outcome: "project_deleted" };
  const active = await activeOf(tx, org_id, project_id);
  if (active === undefined) return { outcome: "nothing" };
  const standing = active.restored_from === null ? active.number : await numberOf(tx, org_id, active.restored_from);
  const target = await goodBefore(tx, org_id, project_id, standing ?? active.number);
  if (target === undefined) return { outcome: "nothing" };
  if (await comingDeployment(tx, org_id, project_id)) return { outcome: "in_progress" };
  const variables = openVariables(making.vault, {
    project_id,
    id: target.id,
    sealed_variables: target.sealed_variables,
  });
  return make(making, tx, {
    ...pick({ ...project, ...target }),
    trigger: "rollback",
    port: target.port,
    health_path: target.health_path,
    variables,
    rolled_back_from: active.id,
    restored_from: target.restored_from ?? target.id,
    lease_owner: null,
  });
}

/** The variables that a deployment was made with. */
export function openVariables(
  vault: Vault,
  deployment: { project_id: string; id: string; sealed_variables: Buffer },
): Record<string, string> {
  return JSON.parse(
    vault.open(deployment.project_id, `deployment:${deployment.id}`, deployment.sealed_variables),
  ) as Record<string, string>;
}

async function make(
  making: Making,
  tx: Tx,
  wanted: Omit<DeploymentRow, "id" | "sealed_variables"> & { variables: Record<string, string> },
): Promise<Made> {
  const { variables, ...row } = wanted;
  const id = newId("dep");
  const sealed_variables = making.vault.seal(row.project_id, `deployment:${id}`, JSON.stringify(variables));
  const number = await insertDeployment(tx, { ...row, id, sealed_variables });
  await making.wakeups.send(tx, "releases", id);
  return { outcome: "made", id, number };
}

function pick(source: Source): Source {
  const { org_id, project_id, build_id, commit, image } = source;
  return { org_id, project_id, build_id, commit, image };
}
