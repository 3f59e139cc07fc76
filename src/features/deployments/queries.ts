import { sql } from "kysely";
import type { Image } from "../../ports/builder.ts";
import type { Failure } from "../../ports/failure.ts";
import type { Db, Tx } from "../../store/database.ts";
import { freshLease, holds, isNoneOf, type Lease } from "../../store/leases.ts";

const shown = [
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
] as const;

export async function listDeployments(tx: Tx, orgId: string, projectId: string) {
  return tx
    .selectFrom("deployment")
    .select(shown)
    .where("org_id", "=", orgId)
    .where("project_id", "=", projectId)
    .orderBy("number", "desc")
    .limit(100)
    .execute();
}

export async function getDeployment(db: Db | Tx, orgId: string, id: string) {
  return db.selectFrom("deployment").select(shown).where("org_id", "=", orgId).where("id", "=", id).executeTakeFirst();
}

/** Serialises numbering and switching per project; undefined when it is deleted. */
export async function lockLivingProject(tx: Tx, orgId: string, projectId: string) {
  return tx
    .selectFrom("project")
    .select(["id", "port", "health_path", "variables_changed_at"])
    .where("org_id", "=", orgId)
    .where("id", "=", projectId)
    .where("deleted_at", "is", null)
    .forUpdate()
    .executeTakeFirst();
}

export async function comingDeployment(db: Db | Tx, orgId: string, projectId: string): Promise<boolean> {
  const row = await db
    .selectFrom("deployment")
    .select("id")
    .where("org_id", "=", orgId)
    .where("project_id", "=", projectId)
    .where("status", "in", ["pending", "starting"])
    .executeTakeFirst();
  return row !== undefined;
}

/** A deployment as it is asked for. */
export interface DeploymentRow {
  readonly id: string;
  readonly org_id: string;
  readonly project_id: string;
  readonly trigger: "push" | "redeploy" | "rollback" | "variables";
  readonly build_id: string;
  readonly commit: string;
  readonly image: Image;
  readonly port: number | null;
  readonly health_path: string | null;
  readonly sealed_variables: Buffer;
  readonly rolled_back_from: string | null;
  readonly restored_from: string | null;
  readonly lease_owner: string | null;
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
    })
    .returning("number")
    .executeTakeFirstOrThrow();
  return inserted.number;
}

/** A deployment that is on its way, with all that starting it needs. */
export interface TakenDeployment {
  readonly id: string;
  readonly org_id: string;
  readonly project_id: string;
  readonly project_number: number;
  readonly slug: string;
  readonly hostname: string;
  readonly replicas: number;
  readonly number: number;
  readonly status: "pending" | "starting";
  readonly trigger: DeploymentRow["trigger"];
  readonly build_id: string;
  readonly commit: string;
  readonly branch: string;
  readonly image: Image;
  readonly port: number | null;
  readonly health_path: string | null;
  readonly sealed_variables: Buffer;
  readonly sealed_cron_secret: Buffer;
  readonly fence: number;
  /** Its control plane died in the middle, or could not close it. */
  readonly abandoned: boolean;
}

/** Takes a deployment that is on its way and that nobody works on; undefined when there is none. */
export async function takeDeployment(
  db: Db,
  owner: string,
  underWay: readonly string[],
): Promise<TakenDeployment | undefined> {
  const taken = await sql<TakenDeployment>`
    with chosen as (
      select d.id, (d.status = 'starting' or d.lease_owner <> ${owner}) is true as abandoned from deployment d
      where ((d.status = 'pending' and (d.lease_owner is null or d.lease_owner = ${owner} or d.lease_until <= now()))
         or (d.status = 'starting' and d.lease_until <= now())) and ${isNoneOf(underWay, "d.id")}
      order by d.created_at, d.id for update skip locked limit 1)
    update deployment d set status = 'starting', lease_owner = ${owner}, lease_until = ${freshLease}, fence = d.fence + 1
    from chosen, project p, build b
    where d.id = chosen.id and p.id = d.project_id and b.id = d.build_id
    returning d.id, d.org_id, d.project_id, p.number as project_number, p.slug, p.hostname, p.replicas, d.number, d.status, d.trigger,
      d.build_id, d.commit, b.branch, d.image, d.port, d.health_path, d.sealed_variables, p.sealed_cron_secret, d.fence, chosen.abandoned`.execute(
    db,
  );
  return taken.rows[0];
}

export async function failDeployment(db: Db | Tx, lease: Lease, failure: Failure): Promise<boolean> {
  const done = await db
    .updateTable("deployment")
    .set({ status: "failed", failure: JSON.stringify(failure), finished_at: sql`now()`, lease_until: null })
    .where(holds(lease))
    .where("status", "=", "starting")
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/**
 * One statement after the other in one transaction: the old one retires, the new one serves. False when the lease was lost.
 * The lease stays until the edge knows (`endSwitch`).
 */
export async function activate(tx: Tx, lease: Lease, deployment: TakenDeployment): Promise<boolean> {
  await tx
    .updateTable("deployment")
    .set({ status: "retired", retired_at: sql`now()` })
    .where("project_id", "=", deployment.project_id)
    .where("status", "=", "active")
    .execute();
  const done = await tx
    .updateTable("deployment")
    .set({ status: "active", activated_at: sql`now()`, finished_at: sql`now()` })
    .where(holds(lease))
    .where("status", "=", "starting")
    .executeTakeFirst();
  if (done.numUpdatedRows !== 1n) return false;
  await tx
    .updateTable("project")
    .set({ updated_at: sql`now()`, deploy_branch: sql`coalesce(deploy_branch, ${deployment.branch})` })
    .where("id", "=", deployment.project_id)
    .execute();
  return true;
}

/** The edge goes by the new row now: whoever waits for it may be told. */
export async function endSwitch(db: Db, lease: Lease): Promise<void> {
  await db
    .updateTable("deployment")
    // A heartbeat that comes late finds another fence and changes nothing.
    .set({ lease_until: null, fence: sql`fence + 1` })
    .where(holds(lease))
    .execute();
}

/** Whether a deployment is active in its row, but not yet known to the edge. */
export async function isSwitching(db: Db, orgId: string, id: string): Promise<boolean> {
  const row = await db
    .selectFrom("deployment")
    .select("id")
    .where("org_id", "=", orgId)
    .where("id", "=", id)
    .where("status", "=", "active")
    .where("lease_until", ">", sql<string>`now()`)
    .executeTakeFirst();
  return row !== undefined;
}

export async function activeOf(db: Db | Tx, orgId: string, projectId: string) {
  return db
    .selectFrom("deployment")
    .select(["id", "number", "build_id", "commit", "image", "restored_from", "port", "health_path", "sealed_variables"])
    .where("org_id", "=", orgId)
    .where("project_id", "=", projectId)
    .where("status", "=", "active")
    .executeTakeFirst();
}

/** The newest good deployment with a number below `number`; undefined when there is none. */
export async function goodBefore(tx: Tx, orgId: string, projectId: string, number: number) {
  return tx
    .selectFrom("deployment")
    .select(["id", "number", "build_id", "commit", "image", "restored_from", "port", "health_path", "sealed_variables"])
    .where("org_id", "=", orgId)
    .where("project_id", "=", projectId)
    .where("status", "=", "retired")
    .where("activated_at", "is not", null)
    .where("image_pruned_at", "is", null)
    .where("number", "<", number)
    .orderBy("number", "desc")
    .limit(1)
    .executeTakeFirst();
}

export async function numberOf(tx: Tx, orgId: string, id: string): Promise<number | undefined> {
  const row = await tx
    .selectFrom("deployment")
    .select("number")
    .where("org_id", "=", orgId)
    .where("id", "=", id)
    .executeTakeFirst();
  return row?.number;
}

/** Projects whose variables changed more than two seconds ago and that can restart now. */
export async function projectsToRestart(db: Db) {
  return db
    .selectFrom("project")
    .innerJoin("deployment", (join) =>
      join.onRef("deployment.project_id", "=", "project.id").on("deployment.status", "=", "active"),
    )
    .select(["project.id", "project.org_id", "project.variables_changed_at"])
    .where("project.deleted_at", "is", null)
    .where("project.variables_changed_at", "<=", sql<string>`now() - interval '2 seconds'`)
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

/** The restart for this change is under way; a newer change keeps its mark. */
export async function clearVariablesMark(tx: Tx, projectId: string): Promise<void> {
  await tx.updateTable("project").set({ variables_changed_at: null }).where("id", "=", projectId).execute();
}

export async function setReplicas(tx: Tx, orgId: string, projectId: string, replicas: number): Promise<void> {
  await tx
    .updateTable("project")
    .set({ replicas, updated_at: sql`now()` })
    .where("org_id", "=", orgId)
    .where("id", "=", projectId)
    .execute();
}

/** The commit of the newest push to the branch that went live: what git's ref points at. Undefined when there was none. */
export async function deployedCommit(
  tx: Tx,
  orgId: string,
  projectId: string,
  branch: string,
): Promise<string | undefined> {
  const row = await tx
    .selectFrom("deployment")
    .innerJoin("build", "build.id", "deployment.build_id")
    .select("build.commit")
    .where("deployment.org_id", "=", orgId)
    .where("deployment.project_id", "=", projectId)
    .where("deployment.trigger", "=", "push")
    .where("deployment.activated_at", "is not", null)
    .where("build.branch", "=", branch)
    .orderBy("deployment.number", "desc")
    .limit(1)
    .executeTakeFirst();
  return row?.commit;
}
