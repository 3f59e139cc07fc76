import type { Page } from "../../kit/page.ts";
import { sql, type UpdateObject } from "kysely";
import type { Image } from "../../ports/builder.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import { claimRow, freshLease, holds, type InProgress, type Lease } from "../../store/leases.ts";
import type { Tables } from "../../store/tables.ts";
import { imageBytes } from "../images/images.ts";
import { changeProject, lockProject, type ProjectKey } from "../projects/projects.ts";
import type { WorkloadSource } from "./serving.ts";

/** The columns that the API returns. */
export const shown = [
  "id",
  "number",
  "status",
  "trigger",
  "build_id",
  "commit",
  "image_ref",
  "created_at",
  "activated_at",
  "retired_at",
  "rolled_back_from",
  "failure",
  "rehearse_only",
] as const;

/** Returns the newest deployments of a project, or the newest before the cursor; one more than a page shows. */
export async function listDeployments(db: Db | Tx, orgId: string, projectId: string, { cursor, limit }: Page<number>) {
  const query = db
    .selectFrom("deployment")
    .select([...shown, imageBytes()])
    .where("org_id", "=", orgId)
    .where("project_id", "=", projectId);
  return (cursor === undefined ? query : query.where("number", "<", cursor))
    .orderBy("number", "desc")
    .limit(limit + 1)
    .execute();
}

export async function getDeployment(db: Db | Tx, orgId: string, id: string) {
  return db
    .selectFrom("deployment")
    .select([...shown, imageBytes()])
    .where(({ and }) => and({ org_id: orgId, id }))
    .executeTakeFirst();
}

export async function selectNumbered(db: Db | Tx, key: ProjectKey & { readonly number: number }) {
  const { org_id, project_id, number } = key;
  return db
    .selectFrom("deployment")
    .select([...shown, imageBytes()])
    .where(({ and }) => and({ org_id, project_id, number }))
    .executeTakeFirst();
}

/** Whether a project may be served, with its settings or the reason against it. */
export type ProjectStatus =
  | { readonly standing: "living"; readonly port: number | null; readonly health_path: string | null }
  | { readonly standing: "project_deleted" | "org_suspended" };

/** Locks the project, to serialise numbering and switching, and returns whether it may be served now. */
export async function lockProjectStatus(tx: Tx, orgId: string, projectId: string): Promise<ProjectStatus> {
  const project = await lockProject(tx, { org_id: orgId, project_id: projectId });
  if (project === undefined || project.deleted_at !== null) return { standing: "project_deleted" };
  // Read this after locking, because waiting for the lock may have taken long.
  const { suspended_at } = await tx
    .selectFrom("organization")
    .select("suspended_at")
    .where("id", "=", orgId)
    .executeTakeFirstOrThrow();
  if (suspended_at !== null) return { standing: "org_suspended" };
  return { standing: "living", port: project.port, health_path: project.health_path };
}

/** Returns whether the token that requested the build was revoked or has expired. */
export async function hasTokenEnded(db: Db | Tx, buildId: string): Promise<boolean> {
  const { rows } = await sql`
    select from build b join api_token t on t.id = b.token_id
    where b.id = ${buildId} and (t.revoked_at is not null or t.expires_at <= now())`.execute(db);
  return rows.length > 0;
}

export async function comingDeployment(db: Db | Tx, orgId: string, projectId: string): Promise<boolean> {
  const row = await db
    .selectFrom("deployment")
    .select("id")
    .where(({ and }) => and({ org_id: orgId, project_id: projectId }))
    .where("status", "in", ["pending", "starting"])
    .executeTakeFirst();
  return row !== undefined;
}

export interface DeploymentRow
  extends
    ProjectKey,
    Columns<"deployment", "id" | "trigger" | "build_id" | "commit" | "port" | "health_path" | "sealed_variables">,
    Columns<"deployment", "rolled_back_from" | "restored_from" | "lease_owner"> {
  readonly image: Image;
  readonly rehearse_only?: boolean;
}

export async function insertDeployment(tx: Tx, row: DeploymentRow): Promise<number> {
  const inserted = await tx
    .insertInto("deployment")
    .values({
      ...row,
      image: JSON.stringify(row.image),
      image_ref: row.image.image_ref,
      lease_until: row.lease_owner === null ? null : freshLease,
      number: sql<number>`(select coalesce(max(number), 0) + 1 from deployment where project_id = ${row.project_id})`,
      variables_changed_at: sql<string>`(select variables_changed_at from project where org_id = ${row.org_id} and id = ${row.project_id})`,
    })
    .returning("number")
    .executeTakeFirstOrThrow();
  return inserted.number;
}

/** A claimed deployment with everything that is needed to start it. */
export interface TakenDeployment extends WorkloadSource {
  readonly in_maintenance: boolean;
  readonly status: "pending" | "starting";
  readonly trigger: DeploymentRow["trigger"];
  readonly build_id: string;
  readonly branch: string;
  readonly old_commit: string | null;
  /** Its release command runs on a copy of the data, and nowhere else. */
  readonly rehearse_only: boolean;
  /** Copies of the data are completed before the release command. */
  readonly copies_data: boolean;
  /** What the commit's berth.json says about the release: its cron jobs, and whether to rehearse. */
  readonly settings: {
    readonly crons?: readonly { path?: string; command?: string; schedule: string }[];
    readonly rehearse?: "auto" | "always" | "never";
  } | null;
  readonly health_path: string | null;
  /** The project's own limit for the start. */
  readonly start_seconds: number | null;
  readonly fence: number;
  /** Its control plane ended during the deployment, or could not close it. */
  readonly abandoned: boolean;
  readonly preview_of: string | null;
  readonly deleted_at: string | null;
  readonly suspended_at: string | null;
}

/** Claims a deployment that is in progress and has no worker; returns undefined when there is none. */
export function takeDeployment(db: Db, owner: string, inProgress: InProgress): Promise<TakenDeployment | undefined> {
  return claimRow<TakenDeployment>(db, {
    ...{ table: "deployment", owner, inProgress, order: "created_at" },
    due: sql`q.status in ('pending', 'starting')`,
    // A push that waits in this process holds the lease of its pending deployment.
    free: sql`(q.lease_until <= now() or (q.status = 'pending' and (q.lease_owner is null or q.lease_owner = ${owner})))`,
    evenIfFull: sql`q.status = 'starting'`,
    set: sql`, status = 'starting'`,
    from: sql`join project p on p.id = q.project_id join organization o on o.id = q.org_id join build b on b.id = q.build_id`,
    returning: sql`t.id, t.org_id, t.project_id, p.number as project_number, p.slug, p.hostname, p.maintenance_since is not null as in_maintenance, t.number, t.status, t.trigger,
      t.build_id, t.commit, t.rehearse_only, b.branch, b.old_commit, b.settings, b.copies_data, t.image, t.port, t.health_path, p.start_seconds, t.sealed_variables, p.sealed_cron_secret, t.fence,
      (q.status = 'starting' or q.lease_owner <> ${owner}) is true as abandoned, p.preview_of, p.deleted_at, o.suspended_at`,
  });
}

/** Ends a deployment in progress that does not go live; false when the lease was lost. One only rehearsed has not failed. */
export async function setEnded(tx: Tx, lease: Lease, failure: Failure | null): Promise<boolean> {
  const done = await tx
    .updateTable("deployment")
    .set({
      status: sql`case when rehearse_only then 'superseded' else 'failed' end`,
      failure: failure === null ? null : JSON.stringify(failure),
      finished_at: sql`now()`,
      lease_until: null,
    })
    .where(holds(lease))
    .where("status", "=", "starting")
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/** Locks the deployment's row until the transaction ends; returns whether the lease still holds. */
export async function lockStarting(tx: Tx, lease: Lease): Promise<boolean> {
  const row = await tx
    .selectFrom("deployment")
    .select("id")
    .where(holds(lease))
    .where("status", "=", "starting")
    .forUpdate()
    .executeTakeFirst();
  return row !== undefined;
}

export async function changeDeployment(
  tx: Tx,
  { org_id, id }: TakenDeployment,
  change: UpdateObject<Tables, "deployment">,
): Promise<void> {
  await tx.updateTable("deployment").set(change).where("org_id", "=", org_id).where("id", "=", id).execute();
}

/** Returns the process types of a deployment, `web` first. */
export async function processesOf(db: Db | Tx, deploymentId: string): Promise<readonly ProcessRow[]> {
  const { rows } = await sql<ProcessRow>`
    select process, command, replicas, overlap from deployment_process where deployment_id = ${deploymentId}
    order by process <> 'web', process`.execute(db);
  return rows;
}

export interface ProcessRow {
  readonly process: string;
  readonly command: string;
  readonly replicas: number;
  /** Whether old and new replicas may run at the same time. */
  readonly overlap: boolean;
}

/** Returns whether another deployment of the project still has replicas of these types. */
export async function othersRun(
  db: Db,
  { id, project_id }: TakenDeployment,
  types: readonly string[],
): Promise<boolean> {
  const { rows } = await sql`
    select from replica where project_id = ${project_id} and deployment_id <> ${id} and process = any(${types})
      and state <> 'stopped' limit 1`.execute(db);
  return rows.length > 0;
}

/** Retires the active deployment and activates this one. Its lease stays until its log is complete (`endSwitch`). */
export async function setActive(tx: Tx, deployment: TakenDeployment): Promise<void> {
  const { org_id, project_id, branch } = deployment;
  await tx
    .updateTable("deployment")
    .set({ status: "retired", retired_at: sql`now()` })
    .where(({ and }) => and({ org_id, project_id, status: "active" }))
    .execute();
  await changeDeployment(tx, deployment, {
    status: "active",
    switching: false,
    activated_at: sql`now()`,
    finished_at: sql`now()`,
  });
  await changeProject(tx, deployment, {
    updated_at: sql`now()`,
    sleep: null,
    deploy_branch: sql`coalesce(deploy_branch, ${branch})`,
  });
}

/** Releases a deployment whose log is complete, so that waiting callers see its outcome. */
export async function endSwitch(db: Db, lease: Lease): Promise<void> {
  await db
    .updateTable("deployment")
    // A late heartbeat finds another fence and changes nothing.
    .set({ lease_until: null, fence: sql`fence + 1` })
    .where(holds(lease))
    .execute();
}

/** Returns whether a deployment is active but its log not yet complete. */
export async function isSwitching(db: Db, orgId: string, id: string): Promise<boolean> {
  const row = await db
    .selectFrom("deployment")
    .select("id")
    .where(({ and }) => and({ org_id: orgId, id, status: "active" }))
    .where("lease_until", ">", sql<string>`now()`)
    .executeTakeFirst();
  return row !== undefined;
}

export async function activeOf(db: Db | Tx, orgId: string, projectId: string) {
  return repeatable(db, orgId, projectId).where("status", "=", "active").executeTakeFirst();
}

/** What another deployment of the same image needs. */
function repeatable(db: Db | Tx, orgId: string, projectId: string) {
  return db
    .selectFrom("deployment")
    .select(["id", "number", "build_id", "commit", "image", "restored_from", "port", "health_path", "sealed_variables"])
    .where("org_id", "=", orgId)
    .where("project_id", "=", projectId);
}

/** Returns the newest good deployment with a number below `number`; undefined when there is none. */
export async function goodBefore(tx: Tx, orgId: string, projectId: string, number: number) {
  return goodDeployments(tx, orgId, projectId).where("number", "<", number).executeTakeFirst();
}

/** Returns the deployment with this number if it was good and its image still exists; otherwise undefined. */
export async function goodOf(tx: Tx, orgId: string, projectId: string, number: number) {
  return goodDeployments(tx, orgId, projectId).where("number", "=", number).executeTakeFirst();
}

function goodDeployments(tx: Tx, orgId: string, projectId: string) {
  return repeatable(tx, orgId, projectId)
    .where("status", "=", "retired")
    .where("activated_at", "is not", null)
    .where("image_pruned_at", "is", null)
    .orderBy("number", "desc")
    .limit(1);
}

export async function numberOf(tx: Tx, orgId: string, id: string): Promise<number | undefined> {
  const row = await tx
    .selectFrom("deployment")
    .select("number")
    .where(({ and }) => and({ org_id: orgId, id }))
    .executeTakeFirst();
  return row?.number;
}

/** Returns when a deployment was created, which is after its build and before its release command. */
export async function deploymentCreatedAt(
  db: Db | Tx,
  { org_id, project_id }: ProjectKey,
  number: number,
): Promise<string | undefined> {
  const row = await db
    .selectFrom("deployment")
    .select("created_at")
    .where(({ and }) => and({ org_id, project_id, number }))
    .executeTakeFirst();
  return row?.created_at;
}

// A restart that failed through the platform's fault is retried after 5 s, 10 s, 20 s … 43 min.
const isResting = sql<boolean>`(
  select max(f.finished_at) + make_interval(secs => 5 * 2 ^ least(count(*) - 1, 9)) > now() from deployment f
  where f.project_id = project.id and f.trigger = 'variables' and f.status = 'failed'
    and f.variables_changed_at = project.variables_changed_at)`;

/** Returns the projects whose variables changed more than two seconds ago and that can restart now. */
export async function projectsToRestart(db: Db) {
  return db
    .selectFrom("project")
    .innerJoin("organization", "organization.id", "project.org_id")
    .innerJoin("deployment", (join) =>
      join.onRef("deployment.project_id", "=", "project.id").on("deployment.status", "=", "active"),
    )
    .select(["project.id", "project.org_id"])
    .where("project.deleted_at", "is", null)
    .where("organization.suspended_at", "is", null)
    .where("project.variables_changed_at", "<=", sql<string>`now() - interval '2 seconds'`)
    .where(sql<boolean>`${isResting} is not true`)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom("deployment as coming")
            .select("coming.id")
            .whereRef("coming.project_id", "=", "project.id")
            .where("coming.status", "in", ["pending", "starting"]),
        ),
      ),
    )
    .execute();
}

export async function setReplicas(tx: Tx, project: ProjectKey, replicas: number): Promise<void> {
  await changeProject(tx, project, { replicas, updated_at: sql`now()` });
}

/** Returns when a build was requested, in milliseconds since 1970. */
export async function buildCreatedAt(tx: Tx, build: { org_id: string; build_id: string }): Promise<number> {
  const row = await tx
    .selectFrom("build")
    .select("created_at")
    .where(({ and }) => and({ org_id: build.org_id, id: build.build_id }))
    .executeTakeFirstOrThrow();
  return Date.parse(row.created_at);
}

/** Returns the newest commit of the branch that went live, and the commit that its push started at; undefined when there is none. */
export async function deployedCommit(
  tx: Db | Tx,
  orgId: string,
  projectId: string,
  branch: string,
): Promise<{ commit: string; old_commit: string | null; build_id: string; activated_at: string | null } | undefined> {
  return tx
    .selectFrom("deployment")
    .innerJoin("build", "build.id", "deployment.build_id")
    .select(["build.commit", "build.old_commit", "build.id as build_id", "deployment.activated_at"])
    .where(({ and }) => and({ "deployment.org_id": orgId, "deployment.project_id": projectId }))
    .where("deployment.trigger", "in", ["push", "upload", "follow"])
    .where("deployment.activated_at", "is not", null)
    .where("build.branch", "=", branch)
    .orderBy("deployment.number", "desc")
    .limit(1)
    .executeTakeFirst();
}
