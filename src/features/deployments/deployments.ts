import { isOfBuild } from "../../contract/states.ts";
import { newId } from "../../kit/ids.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Lease } from "../../store/leases.ts";
import type { Vault } from "../../store/vault.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import type { Context, RefusalText } from "../context.ts";
import { sealVariables, variablesOf } from "../env/env.ts";
import * as queries from "./queries.ts";
import { isOwnFault } from "./rules.ts";
import { sql } from "kysely";

export { compareIn } from "./compare-in.ts";
export { endComing } from "./deployment-outcome.ts";
export {
  activeOf,
  comingDeployment,
  deployedCommit,
  deploymentCreatedAt,
  endSwitch,
  hasTokenEnded,
  othersRun,
  processesOf,
  projectsToRestart,
  setReplicas,
  takeDeployment,
  type ProcessRow,
  type TakenDeployment,
} from "./queries.ts";

export { deploymentOutcome } from "./deployment-outcome.ts";
export { isDatabaseUsed, keepDatabase } from "./serving.ts";
export { outputOwners, pushedDeployments, sealedSecretsOf, workloadSource, type WorkloadSource } from "./serving.ts";

export interface DeployDependencies {
  readonly vault: Vault;
  readonly wakeups: Wakeups;
}

interface MadeDeployment {
  readonly outcome: "made";
  readonly id: string;
  readonly number: number;
}

/** A rollback: the numbers of the deployment that served and of the one it brings back, and the names of variables that it changes. */
interface MadeRollback extends MadeDeployment {
  readonly from: number;
  readonly to: number;
  readonly changed_variables: readonly string[];
}

/** A created deployment, or why none can be created now: for a general reason, or for one that is specific to the kind of deployment. */
export type CreateDeploymentResult<Reason extends string> =
  | MadeDeployment
  | { readonly outcome: "in_progress" | "project_deleted" | "org_suspended" | Reason };

type Source = Pick<queries.DeploymentRow, "org_id" | "project_id" | "build_id" | "commit" | "image">;

interface BuiltSource extends Source {
  readonly trigger: "push" | "upload" | "follow" | "redeploy";
  readonly branch: string;
  readonly old_commit: string | null;
  /** The first parent of an uploaded commit: the head, or the upload that was in progress when this one came. */
  readonly parent: string | null;
  /** Settings from the source; the project's own settings override them. */
  readonly settings?: { readonly port?: number | undefined; readonly health_path?: string | undefined };
  /** The control plane on which a push waits, if any. */
  readonly owner: string | null;
  readonly rehearse_only: boolean;
}

/** Deploys a build's image with the current settings and variables. */
export async function deployBuild(
  dependencies: DeployDependencies,
  tx: Tx,
  source: BuiltSource,
): Promise<CreateDeploymentResult<"branch_moved" | "token_ended">> {
  const project = await queries.lockProjectStatus(tx, source.org_id, source.project_id);
  if (project.standing !== "living") return { outcome: project.standing };
  if (await queries.hasTokenEnded(tx, source.build_id)) return { outcome: "token_ended" };
  if (await queries.comingDeployment(tx, source.org_id, source.project_id)) return { outcome: "in_progress" };
  if (await hasMoved(tx, source)) return { outcome: "branch_moved" };
  const variables = await variablesOf(tx, dependencies.vault, source);
  return createDeployment(dependencies, tx, {
    ...pick(source),
    trigger: source.trigger,
    port: project.port ?? source.settings?.port ?? source.image.port ?? null,
    health_path: project.health_path ?? source.settings?.health_path ?? null,
    variables,
    rolled_back_from: null,
    restored_from: null,
    lease_owner: source.owner,
    rehearse_only: source.rehearse_only,
  });
}

/**
 * Returns whether another commit of the branch went live since the build was requested. Of two pushes that start at the same commit, git
 * moves the branch only for the first, so the second must not go live: the branch would never point at it.
 */
async function hasMoved(tx: Tx, source: BuiltSource): Promise<boolean> {
  if (source.trigger === "redeploy" || source.rehearse_only) return false;
  const deployed = await queries.deployedCommit(tx, source.org_id, source.project_id, source.branch);
  if (deployed === undefined || [source.old_commit, source.parent].includes(deployed.commit)) return false;
  // A push that changes no watched path moves the branch without a deployment, so only deployments that went live meanwhile count.
  const sinceMs =
    (await queries.buildCreatedAt(tx, source)) - (deployed.old_commit === source.old_commit ? switchMs : 0);
  return Date.parse(deployed.activated_at ?? "") > sinceMs;
}

/** A switch that started before a build was queued may commit after it. */
const switchMs = 60_000;

/** Restarts the active image with the current variables, because they changed or a caller asked for a restart. */
export async function restartDeployment(
  dependencies: DeployDependencies,
  tx: Tx,
  project: { org_id: string; project_id: string },
  trigger: "variables" | "restart",
): Promise<CreateDeploymentResult<"nothing">> {
  const { org_id, project_id } = project;
  const locked = await queries.lockProjectStatus(tx, org_id, project_id);
  if (locked.standing !== "living") return { outcome: locked.standing };
  const active = await queries.activeOf(tx, org_id, project_id);
  if (active === undefined) return { outcome: "nothing" };
  if (await queries.comingDeployment(tx, org_id, project_id)) return { outcome: "in_progress" };
  const variables = await variablesOf(tx, dependencies.vault, project);
  return createDeployment(dependencies, tx, {
    ...pick({ ...project, ...active }),
    trigger,
    port: active.port,
    health_path: active.health_path,
    variables,
    rolled_back_from: null,
    // For rollbacks, a restart counts as the deployment that it restarts, so that a later rollback goes back to another image.
    restored_from: trigger === "restart" ? (active.restored_from ?? active.id) : null,
    lease_owner: null,
  });
}

/**
 * Deploys the image and variables of an earlier deployment: the one with this number, or the last good one before the active. When it goes
 * live, its variables become the project's. A rollback counts as the deployment that it restores, so a second rollback goes one further
 * back, never to the deployment that the first one replaced.
 */
export async function rollBack(
  dependencies: DeployDependencies,
  tx: Tx,
  project: { org_id: string; project_id: string },
  number?: number,
): Promise<MadeRollback | Exclude<CreateDeploymentResult<"nothing">, MadeDeployment>> {
  const { org_id, project_id } = project;
  const locked = await queries.lockProjectStatus(tx, org_id, project_id);
  if (locked.standing !== "living") return { outcome: locked.standing };
  const active = await queries.activeOf(tx, org_id, project_id);
  if (active === undefined) return { outcome: "nothing" };
  const standing =
    active.restored_from === null ? active.number : await queries.numberOf(tx, org_id, active.restored_from);
  const target =
    number === undefined
      ? await queries.goodBefore(tx, org_id, project_id, standing ?? active.number)
      : await queries.goodOf(tx, org_id, project_id, number);
  if (target === undefined) return { outcome: "nothing" };
  if (await queries.comingDeployment(tx, org_id, project_id)) return { outcome: "in_progress" };
  const variables = openVariables(dependencies.vault, {
    project_id,
    id: target.id,
    sealed_variables: target.sealed_variables,
  });
  const made = await createDeployment(dependencies, tx, {
    ...pick({ ...project, ...target }),
    trigger: "rollback",
    port: target.port,
    health_path: target.health_path,
    variables,
    rolled_back_from: active.id,
    restored_from: target.restored_from ?? target.id,
    lease_owner: null,
  });
  const changed_variables = differingKeys(await variablesOf(tx, dependencies.vault, project), variables);
  await setRestoredVariables(tx, made.id, sealVariables(dependencies.vault, project_id, variables), changed_variables);
  return { ...made, from: active.number, to: target.number, changed_variables };
}

/** Says why there is nothing to roll back to: nothing beyond the error's own text without a number. */
export function textOfNothing(number: number | undefined): RefusalText {
  if (number === undefined) return {};
  return {
    error: `Berth cannot roll back to deployment ${number}: the number does not exist, or that deployment never served, serves now, or has lost its image.`,
    hint: "Choose the number of a deployment with the status `retired`.",
  };
}

function differingKeys(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): readonly string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => a[key] !== b[key]).toSorted();
}

/** The result of a step of a switch. `lease_lost`: another worker has claimed or ended the deployment. */
export type Switched = "done" | "project_deleted" | "org_suspended" | "token_ended" | "lease_lost";

/** Routes the project's requests to the deployment, if the project may be served now. The active deployment keeps running, and gets them again if this one fails. */
export function routeTo(tx: Tx, lease: Lease, deployment: queries.TakenDeployment): Promise<Switched> {
  return switchStep(tx, lease, deployment, () => queries.changeDeployment(tx, deployment, { switching: true }));
}

/** Stops those process types of the active deployment that must not run twice. They start again if this deployment fails. */
export function takeOver(tx: Tx, lease: Lease, deployment: queries.TakenDeployment): Promise<Switched> {
  return switchStep(tx, lease, deployment, () => queries.changeDeployment(tx, deployment, { taking_over: true }));
}

/** Makes the deployment the active one, in place of the present one. */
export function activate(tx: Tx, lease: Lease, deployment: queries.TakenDeployment): Promise<Switched> {
  return switchStep(tx, lease, deployment, async () => {
    await queries.setActive(tx, deployment);
    await restoreVariables(tx, deployment);
    await settleVariables(tx, deployment);
  });
}

async function switchStep(
  tx: Tx,
  lease: Lease,
  { org_id, project_id, trigger, build_id }: queries.TakenDeployment,
  step: () => Promise<void>,
): Promise<Switched> {
  const { standing } = await queries.lockProjectStatus(tx, org_id, project_id);
  if (standing !== "living") return standing;
  if (isOfBuild(trigger) && (await queries.hasTokenEnded(tx, build_id))) return "token_ended";
  if (!(await queries.lockStarting(tx, lease))) return "lease_lost";
  await step();
  return "done";
}

/** Ends a deployment that failed; false when the lease was lost. Changed variables that made the application fail are not retried. */
export async function failDeployment(
  db: Db,
  lease: Lease,
  deployment: queries.TakenDeployment,
  failure: Failure,
): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    // Lock in the same order as `activate`, so that the two cannot deadlock.
    await queries.lockProjectStatus(tx, deployment.org_id, deployment.project_id);
    if (!(await queries.setEnded(tx, lease, failure))) return false;
    if (deployment.trigger === "variables" && isOwnFault(failure)) await settleVariables(tx, deployment);
    return true;
  });
}

export async function endRehearsed(db: Db, lease: Lease): Promise<void> {
  await db.transaction().execute((tx) => queries.setEnded(tx, lease, null));
}

export function openVariables(
  vault: Vault,
  deployment: { project_id: string; id: string; sealed_variables: Buffer },
): Record<string, string> {
  return JSON.parse(
    vault.open(deployment.project_id, `deployment:${deployment.id}`, deployment.sealed_variables),
  ) as Record<string, string>;
}

export async function variablesOfDeployment(
  vault: Vault,
  tx: Tx,
  project: { org_id: string; project_id: string },
  number: number,
): Promise<Record<string, string> | undefined> {
  const row = await variablesOfNumber(tx, project.org_id, project.project_id, number);
  return row && openVariables(vault, row);
}

async function createDeployment(
  dependencies: DeployDependencies,
  tx: Tx,
  wanted: Omit<queries.DeploymentRow, "id" | "sealed_variables"> & { variables: Record<string, string> },
): Promise<MadeDeployment> {
  const { variables, ...row } = wanted;
  const id = newId("dep");
  const sealed_variables = dependencies.vault.seal(row.project_id, `deployment:${id}`, JSON.stringify(variables));
  const number = await queries.insertDeployment(tx, { ...row, id, sealed_variables });
  await dependencies.wakeups.send(tx, "releases", id);
  return { outcome: "made", id, number };
}

function pick(source: Source): Source {
  const { org_id, project_id, build_id, commit, image } = source;
  return { org_id, project_id, build_id, commit, image };
}

/** Sets how many replicas of `ctx.project` run; the reconciler starts and stops them. */
export async function scaleProject(ctx: Context<"deployments.scale"> | Context<"orgs.scale">, replicas: number) {
  const { key, slug: target } = ctx.project;
  await queries.setReplicas(ctx.tx, key, replicas);
  await ctx.platform.wakeups.send(ctx.tx, "apps", key.project_id);
  ctx.note({ target, detail: { replicas } });
  return { replicas };
}

/** Clears the project's pending restart if this deployment already has the variable change that caused it. A later change stays pending. */
async function settleVariables(tx: Tx, deployment: { readonly id: string; readonly org_id: string }): Promise<void> {
  const { id, org_id } = deployment;
  await sql`update project p set variables_changed_at = null from deployment d
    where d.org_id = ${org_id} and d.id = ${id} and p.org_id = d.org_id and p.id = d.project_id
      and p.variables_changed_at = d.variables_changed_at`.execute(tx);
}

async function variablesOfNumber(db: Db | Tx, orgId: string, projectId: string, number: number) {
  return db
    .selectFrom("deployment")
    .select(["id", "project_id", "sealed_variables"])
    .where(({ and }) => and({ org_id: orgId, project_id: projectId, number }))
    .executeTakeFirst();
}

/** Stores the variables that become the project's when this rollback goes live, except that those not in `changed` stay as they are. */
async function setRestoredVariables(
  tx: Tx,
  id: string,
  variables: readonly { readonly key: string; readonly sealed_value: Buffer; readonly size_bytes: number }[],
  changed: readonly string[],
): Promise<void> {
  const rows = variables.map(({ sealed_value, ...each }) => ({
    ...{ ...each, sealed_value: sealed_value.toString("base64"), same: !changed.includes(each.key) },
  }));
  await tx
    .updateTable("deployment")
    .set({ restored_variables: JSON.stringify(rows) })
    .where("id", "=", id)
    .execute();
}

/** Makes the variables of a rollback the project's. Variables set while the rollback was in progress are kept. */
async function restoreVariables(tx: Tx, { id }: { readonly id: string }): Promise<void> {
  await sql`delete from project_variable v using deployment d where d.id = ${id} and d.restored_variables is not null
    and v.org_id = d.org_id and v.project_id = d.project_id and v.updated_at <= d.created_at
    and not exists (select from jsonb_to_recordset(d.restored_variables) r (key text, same boolean) where r.key = v.key and r.same)`.execute(
    tx,
  );
  await sql`insert into project_variable (org_id, project_id, key, sealed_value, size_bytes)
    select d.org_id, d.project_id, r.key, decode(r.sealed_value, 'base64'), r.size_bytes
    from deployment d, jsonb_to_recordset(d.restored_variables) r (key text, sealed_value text, size_bytes integer)
    where d.id = ${id} on conflict (project_id, key) do nothing`.execute(tx);
}
