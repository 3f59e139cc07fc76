import { sql } from "kysely";
import type { Image } from "../../ports/builder.ts";
import type { Columns, Db, Tx } from "../../store/database.ts";
import type { ProjectKey } from "../projects/projects.ts";
import { parseWorkloadId } from "../replicas/replicas.ts";

/** A deployment with everything from its project that is needed to start it. */
export interface WorkloadSource
  extends
    Columns<"deployment", "id" | "org_id" | "project_id" | "number" | "commit" | "port" | "sealed_variables">,
    Columns<"project", "slug" | "hostname" | "sealed_cron_secret"> {
  readonly project_number: number;
  readonly image: Image;
}

/** Returns a deployment with its project's part; throws when there is no such deployment. */
export async function workloadSource(db: Db, orgId: string, id: string): Promise<WorkloadSource> {
  const { rows } = await sql<WorkloadSource>`
    select d.id, d.org_id, d.project_id, p.number as project_number, p.slug, p.hostname, d.number, d.commit, d.image, d.port,
      d.sealed_variables, p.sealed_cron_secret
    from deployment d join project p on p.id = d.project_id where d.org_id = ${orgId} and d.id = ${id}`.execute(db);
  if (rows[0] === undefined) throw new Error(`there is no deployment ${id}`);
  return rows[0];
}

/** Returns the deployments whose output these workloads write, in any order. */
export async function outputOwners(db: Db, workloadIds: readonly string[]) {
  if (workloadIds.length === 0) return [];
  const ids = new Set(workloadIds.map((id) => parseWorkloadId(id).deployment_id));
  const rows = await db
    .selectFrom("deployment")
    .select(["id", "org_id", "project_id", "number"])
    .where("id", "in", [...ids])
    .execute();
  const known = new Map(rows.map((row) => [row.id, row]));
  return workloadIds.flatMap((workload_id) => {
    const { deployment_id, process } = parseWorkloadId(workload_id);
    const owner = known.get(deployment_id);
    return owner === undefined ? [] : [{ workload_id, process, owner }];
  });
}

/** Returns the sealed secrets of a deployment's applications, except those of its database. */
export async function sealedSecretsOf(db: Db, orgId: string, id: string) {
  return db
    .selectFrom("deployment")
    .innerJoin("project", "project.id", "deployment.project_id")
    .select(["deployment.sealed_variables", "project.sealed_cron_secret"])
    .where(({ and }) => and({ "deployment.org_id": orgId, "deployment.id": id }))
    .executeTakeFirst();
}

/**
 * Returns the newest push of each project that went live, so that its branch can be pointed at its commit, even if a restart or rollback
 * has replaced it since. Leaves out pushes of the last minute, which may still be moving the branch, unless they are older than `since`:
 * then the process that moved it has ended.
 */
export async function pushedDeployments(db: Db, since: Date): Promise<readonly PushedDeployment[]> {
  const { rows } = await sql<PushedDeployment>`
    select d.project_id, d.build_id, d.commit, d.trigger, b.branch, b.old_commit
    from project p
    cross join lateral (select project_id, build_id, commit, trigger, activated_at from deployment
      where project_id = p.id and trigger in ('push', 'upload', 'follow') and activated_at is not null order by number desc limit 1) d
    join build b on b.id = d.build_id
    where d.activated_at < greatest(now() - interval '60 seconds', ${since})
    order by p.number`.execute(db);
  return rows;
}

export interface PushedDeployment {
  readonly project_id: string;
  readonly build_id: string;
  readonly commit: string;
  readonly trigger: string;
  readonly branch: string;
  readonly old_commit: string | null;
}

const onItsWay = ["pending", "starting", "active"] as const;

/** Pins what is active and in progress to this database before another becomes live: a restart must not write to a different one. */
export async function keepDatabase(tx: Tx, { org_id, project_id }: ProjectKey, name: string): Promise<void> {
  await tx
    .updateTable("deployment")
    .set({ database_name: name })
    .where(({ and }) => and({ org_id, project_id }))
    .where("status", "in", onItsWay)
    .where("database_name", "is", null)
    .execute();
}

/** Returns whether the active deployment or one in progress is pinned to this database. */
export async function isDatabaseUsed(tx: Tx, { org_id, project_id }: ProjectKey, name: string): Promise<boolean> {
  const row = await tx
    .selectFrom("deployment")
    .select("id")
    .where(({ and }) => and({ org_id, project_id }))
    .where("status", "in", onItsWay)
    .where("database_name", "=", name)
    .executeTakeFirst();
  return row !== undefined;
}
