import { sql } from "kysely";
import type { Db } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { requestBuild } from "../builds/builds.ts";
import { lockProject } from "../projects/projects.ts";
import { requestOf } from "./rules.ts";

interface Key {
  readonly org_id: string;
  readonly id: string;
}

/** Requests a rehearsal of what a pending promotion would deploy, unless one is under way or has a result. */
export async function rehearsePromotion(db: Db, wakeups: Wakeups, { org_id, id }: Key): Promise<void> {
  await db.transaction().execute(async (tx) => {
    const approval = await tx
      .selectFrom("approval")
      .select(["project_id", "token_id", "token_name", "target", "request"])
      .where(({ and }) => and({ org_id, id, status: "pending", route: "previews.promote" }))
      .executeTakeFirst();
    if (approval?.project_id === undefined || approval.project_id === null) return;
    const { build, commit } = requestOf(approval).detail;
    if (typeof build !== "string" || typeof commit !== "string") return;
    await lockProject(tx, { org_id, project_id: approval.project_id });
    const { rows } =
      await sql`select from build b left join deployment d on d.build_id = b.id left join rehearsal r on r.deployment_id = d.id
      where b.org_id = ${org_id} and b.approval_id = ${id}
        and (b.status in ('queued', 'running') or d.status in ('pending', 'starting') or r.status in ('passed', 'failed'))`.execute(
        tx,
      );
    if (rows.length > 0) return;
    const { project_id, token_id, token_name: requested_by, target } = approval;
    const branch = target ?? "main";
    await requestBuild(tx, wakeups, {
      ...{ org_id, project_id, origin: "push", rehearse_only: true, approval_id: id, promoted_from: build, commit },
      ...{ branch, message: `Rehearse the preview of ${branch}`, author: null, old_commit: null, lease_owner: null },
      ...{ requested_by, token_id },
    });
  });
}

/** Requests the rehearsal of each pending promotion by a token that could deploy the code itself; others' code needs a person first. */
export async function rehearsePromotions(db: Db, wakeups: Wakeups, now: Date): Promise<number> {
  const { rows } = await sql<Key>`
    select a.id, a.org_id from approval a join project p on p.id = a.project_id
    where a.status = 'pending' and a.expires_at > ${now} and a.route = 'previews.promote' and p.agents = 'deploy'
      and not exists (select from build b where b.approval_id = a.id) limit 20`.execute(db);
  for (const key of rows) await rehearsePromotion(db, wakeups, key);
  return rows.length;
}
