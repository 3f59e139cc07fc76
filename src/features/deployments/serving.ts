import { sql } from "kysely";
import type { Image } from "../../ports/builder.ts";
import type { Db } from "../../store/database.ts";

/** Every project with its hostname and what it serves, for the edge. */
export async function servedProjects(db: Db) {
  return db
    .selectFrom("project")
    .innerJoin("organization", "organization.id", "project.org_id")
    .leftJoin("deployment", (join) =>
      join.onRef("deployment.project_id", "=", "project.id").on("deployment.status", "=", "active"),
    )
    .select([
      "project.id as project_id",
      "project.hostname",
      "project.replicas",
      "project.deleted_at",
      "organization.suspended_at",
      "deployment.id as deployment_id",
    ])
    .where("project.purged_at", "is", null)
    .execute();
}

/** Which start of each replica of these deployments passed its health check. */
export async function readyReplicas(
  db: Db,
  deploymentIds: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<number, number>>> {
  const { rows } = await sql<{ deployment_id: string; ordinal: number; ready_attempt: number }>`
    select deployment_id, ordinal, ready_attempt from replica where deployment_id = any(${deploymentIds})`.execute(db);
  const grouped = Map.groupBy(rows, (row) => row.deployment_id);
  return new Map(
    [...grouped].map(([id, replicas]) => [id, new Map(replicas.map((row) => [row.ordinal, row.ready_attempt]))]),
  );
}

/** Grows over all control planes. */
export async function nextRouteVersion(db: Db): Promise<number> {
  const row = await sql<{ version: number }>`select nextval('route_version') as version`.execute(db);
  return (row.rows[0] as { version: number }).version;
}

// Far more than are drawn while one statement runs.
const versionsInAStatement = 1000;

/**
 * To be called at the start of a control plane: lifts the next version above the present time in milliseconds, of which fewer are drawn than
 * pass. An edge ignores older versions than it has, for ever if the database was reset or restored from a backup meanwhile.
 */
export async function raiseRouteVersion(db: Db): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('route_version', 0))`.execute(tx);
    await sql`
      select setval('route_version', wanted) from route_version, (select (extract(epoch from clock_timestamp()) * 1000)::bigint as wanted) as present
      where last_value + ${sql.lit(versionsInAStatement)} < wanted`.execute(tx);
  });
}

/** What is known of one replica of a deployment. */
export interface ReplicaRow {
  readonly ordinal: number;
  readonly ready_attempt: number;
  readonly crashed_attempt: number;
  readonly restarts: number;
  readonly next_start_at: string | null;
}

/** All that the runtime may have or ought to have, with what it takes to start it. */
export async function workloadRows(db: Db, ids: readonly string[]) {
  return db
    .selectFrom("deployment")
    .innerJoin("project", "project.id", "deployment.project_id")
    .innerJoin("organization", "organization.id", "deployment.org_id")
    .select([
      "deployment.id",
      "deployment.org_id",
      "deployment.project_id",
      "deployment.number",
      "deployment.status",
      "deployment.commit",
      "deployment.image",
      "deployment.port",
      "deployment.health_path",
      "deployment.sealed_variables",
      "deployment.retired_at",
      "deployment.lease_until",
      "project.number as project_number",
      "project.slug",
      "project.hostname",
      "project.replicas",
      "project.updated_at",
      "project.sealed_cron_secret",
      "project.deleted_at",
      "organization.suspended_at",
    ])
    .where((where) =>
      where.or([
        where("deployment.status", "=", "active"),
        ...(ids.length > 0 ? [where("deployment.id", "in", [...ids])] : []),
      ]),
    )
    .execute();
}

/** Whose output these deployments write. */
export async function outputOwners(db: Db, ids: readonly string[]) {
  if (ids.length === 0) return [];
  return db
    .selectFrom("deployment")
    .select(["id", "org_id", "project_id", "number"])
    .where("id", "in", [...ids])
    .execute();
}

/** The secrets that a deployment's applications get, but for those of its database. */
export async function sealedSecretsOf(db: Db, orgId: string, id: string) {
  return db
    .selectFrom("deployment")
    .innerJoin("project", "project.id", "deployment.project_id")
    .select(["deployment.sealed_variables", "project.sealed_cron_secret"])
    .where("deployment.org_id", "=", orgId)
    .where("deployment.id", "=", id)
    .executeTakeFirst();
}

export type WorkloadRow = Awaited<ReturnType<typeof workloadRows>>[number] & { readonly image: Image };

export async function replicasOf(db: Db, deploymentId: string): Promise<readonly ReplicaRow[]> {
  return db
    .selectFrom("replica")
    .select(["ordinal", "ready_attempt", "crashed_attempt", "restarts", "next_start_at"])
    .where("deployment_id", "=", deploymentId)
    .execute();
}

/** This start of the replica passed its health check. */
export async function markReady(
  db: Db,
  replica: { org_id: string; deployment_id: string; ordinal: number; attempt: number },
): Promise<void> {
  const { attempt, ...key } = replica;
  await db
    .insertInto("replica")
    .values({ ...key, ready_attempt: attempt })
    .onConflict((on) => on.columns(["deployment_id", "ordinal"]).doUpdateSet({ ready_attempt: attempt }))
    .execute();
}

/** These replicas get no traffic until they pass a health check again. */
export async function markWithdrawn(db: Db, deploymentId: string, ordinals: readonly number[]): Promise<void> {
  if (ordinals.length === 0) return;
  await db
    .updateTable("replica")
    .set({ ready_attempt: 0 })
    .where("deployment_id", "=", deploymentId)
    .where("ordinal", "in", [...ordinals])
    .execute();
}

/** A replica's start ended; it is to be started again after the pause. False when this start's end is known already. */
export async function markCrashed(
  db: Db,
  crash: {
    org_id: string;
    deployment_id: string;
    ordinal: number;
    attempt: number;
    exit_code: number | null;
    out_of_memory: boolean;
    restarts: number;
    pauseMs: number;
  },
): Promise<boolean> {
  const { attempt, pauseMs, ...row } = crash;
  const state = {
    ...row,
    crashed_attempt: attempt,
    exited_at: sql<string>`now()`,
    next_start_at: sql<string>`now() + make_interval(secs => ${pauseMs / 1000})`,
  };
  const done = await db
    .insertInto("replica")
    .values(state)
    .onConflict((on) =>
      on.columns(["deployment_id", "ordinal"]).doUpdateSet(state).where("replica.crashed_attempt", "<", attempt),
    )
    .executeTakeFirst();
  return done.numInsertedOrUpdatedRows === 1n;
}

/**
 * The newest push of each project that went live: its branch must point at its commit, also when a restart with new variables or a
 * rollback has taken its place meanwhile. Left out are those of the last minute, whose push may just be moving the branch, unless
 * they are older than `since`, when whoever moved it has ended.
 */
export async function pushedDeployments(db: Db, since: Date): Promise<readonly PushedDeployment[]> {
  const { rows } = await sql<PushedDeployment>`
    select d.project_id, d.build_id, d.commit, b.branch, b.old_commit
    from project p
    cross join lateral (select project_id, build_id, commit, activated_at from deployment
      where project_id = p.id and trigger = 'push' and activated_at is not null order by number desc limit 1) d
    join build b on b.id = d.build_id
    where d.activated_at < greatest(now() - interval '60 seconds', ${since})
    order by p.number`.execute(db);
  return rows;
}

export interface PushedDeployment {
  readonly project_id: string;
  readonly build_id: string;
  readonly commit: string;
  readonly branch: string;
  readonly old_commit: string | null;
}
