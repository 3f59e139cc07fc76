import { sql } from "kysely";
import type { Rehearsal, RehearsalReport } from "../../contract/rehearsal.ts";
import { triggersOfBuilds } from "../../contract/states.ts";
import type { Db, Tx } from "../../store/database.ts";

interface DeploymentKey {
  readonly org_id: string;
  readonly project_id: string;
  readonly id: string;
}

/** Begins the deployment's rehearsal, also again after a crash. */
export async function beginRehearsal(
  db: Db,
  { id, org_id, project_id }: DeploymentKey,
  database_id: string | null,
): Promise<void> {
  const begun = { status: "running", reason: null, report: null, database_id, cleared: database_id === null } as const;
  await db
    .insertInto("rehearsal")
    .values({ deployment_id: id, org_id, project_id, ...begun })
    .onConflict((on) => on.column("deployment_id").doUpdateSet({ ...begun, started_at: sql`now()`, finished_at: null }))
    .execute();
}

export type Outcome = Pick<Rehearsal, "reason" | "report"> & { readonly status: "passed" | "failed" | "skipped" };

export async function endRehearsal(
  db: Db,
  { id, org_id }: Pick<DeploymentKey, "id" | "org_id">,
  { report, ...outcome }: Outcome,
): Promise<void> {
  await db
    .updateTable("rehearsal")
    .set({ ...outcome, report: report === null ? null : JSON.stringify(report), finished_at: sql`now()` })
    .where(({ and }) => and({ org_id, deployment_id: id }))
    .execute();
}

export async function noteCopy(
  db: Db,
  { id, org_id }: Pick<DeploymentKey, "id" | "org_id">,
  copy: { readonly method: "clone" | "copy"; readonly copy_bytes: number },
): Promise<void> {
  await db
    .updateTable("rehearsal")
    .set(copy)
    .where(({ and }) => and({ org_id, deployment_id: id }))
    .execute();
}

/** Notes that a rehearsal's copy is gone; one that had not ended was interrupted. */
export async function noteCleared(db: Db, { id, org_id }: Pick<DeploymentKey, "id" | "org_id">): Promise<void> {
  await sql`update rehearsal set cleared = true,
      status = case when status = 'running' then 'skipped' else status end,
      reason = case when status = 'running' then 'The platform restarted meanwhile.' else reason end,
      finished_at = coalesce(finished_at, now())
    where org_id = ${org_id} and deployment_id = ${id}`.execute(db);
}

/** Returns rehearsals whose copy may be left although their deployment has ended. */
export async function abandonedRehearsals(db: Db) {
  const { rows } = await sql<DeploymentKey & { database_id: string; project_number: number }>`
    select r.deployment_id as id, r.org_id, r.project_id, r.database_id, p.number as project_number
    from rehearsal r join deployment d on d.id = r.deployment_id join project p on p.id = r.project_id
    where not r.cleared and d.status not in ('pending', 'starting') limit 20`.execute(db);
  return rows;
}

/** Returns the rehearsal of a deployment, null if it had none; undefined if there is no such deployment. */
export async function rehearsalOf(
  db: Db | Tx,
  key: { readonly org_id: string; readonly project_id: string; readonly number: number },
): Promise<Rehearsal | null | undefined> {
  const { org_id, project_id, number } = key;
  const row = await db
    .selectFrom("deployment")
    .leftJoin("rehearsal", "rehearsal.deployment_id", "deployment.id")
    .select(["rehearsal.status", "reason", "method", "copy_bytes", "started_at", "rehearsal.finished_at", "report"])
    .where(({ and }) =>
      and({ "deployment.org_id": org_id, "deployment.project_id": project_id, "deployment.number": number }),
    )
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { status, started_at, report, ...rest } = row;
  if (status === null || started_at === null) return null;
  return { ...rest, status, started_at, report: report as Rehearsal["report"] };
}

/** Returns the approval by which a person who could see its rehearsal let a preview go live, with what that told. */
export async function promotionSeen(
  db: Db,
  { org_id, build_id }: { readonly org_id: string; readonly build_id: string },
) {
  const { rows } = await sql<{ id: string; report: RehearsalReport }>`
    select a.id, r.report from build x join build b on b.project_id = x.project_id and b.promoted_from = x.promoted_from
      join approval a on a.id = b.approval_id and a.status = 'consumed' and a.token_id = x.token_id
        and a.consumed_at between x.created_at - interval '1 minute' and x.created_at + interval '1 minute'
      join deployment d on d.build_id = b.id join rehearsal r on r.deployment_id = d.id and r.finished_at < a.decided_at
    where x.org_id = ${org_id} and x.id = ${build_id} and r.report is not null order by b.number desc limit 1`.execute(
    db,
  );
  return rows[0];
}

/** The token that asked for a build, as an approval names it; undefined when it asked through none. */
export async function askerOf(db: Db, { org_id, build_id }: { readonly org_id: string; readonly build_id: string }) {
  return db
    .selectFrom("build")
    .innerJoin("api_token", "api_token.id", "build.token_id")
    .innerJoin("organization", "organization.id", "build.org_id")
    .select(["api_token.id as token_id", "api_token.name as token_name", "organization.slug as org_slug"])
    .where(({ and }) => and({ "build.org_id": org_id, "build.id": build_id }))
    .executeTakeFirst();
}

/** Returns whether a release command has run since a deployment, so that its code may not fit the data. */
export async function hasReleasedSince(
  tx: Tx,
  { org_id, project_id }: Omit<DeploymentKey, "id">,
  number: number,
): Promise<boolean> {
  const { rows } =
    await sql`select from deployment where org_id = ${org_id} and project_id = ${project_id} and number > ${number}
    and not rehearse_only and trigger = any(${triggersOfBuilds}) and image->>'release_command' is not null limit 1`.execute(
      tx,
    );
  return rows.length > 0;
}
