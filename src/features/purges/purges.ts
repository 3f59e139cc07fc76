import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { recordEvent } from "../activity/activity.ts";
import { lockProject, type ProjectKey } from "../projects/projects.ts";
import { insertPurge, purgeableProjects, runningPurge } from "./queries.ts";

export * from "./queries.ts";

/** Requests the purge of a deleted project; returns its id, or the id of the purge already running. */
export async function requestPurge(
  tx: Tx,
  wakeups: Wakeups,
  wanted: ProjectKey & { readonly requested_by: string },
): Promise<string> {
  const id = newId("pur");
  await insertPurge(tx, { ...wanted, id });
  await wakeups.send(tx, "purges", wanted.project_id);
  return (await runningPurge(tx, wanted)) ?? id;
}

const dayMs = 86_400_000;

/** Requests the purge of every project that was deleted at least this many days ago. A failed purge is retried after a day. */
export async function requestDuePurges(db: Db, wakeups: Wakeups, due: { now: Date; days: number }): Promise<number> {
  const ago = (days: number) => new Date(due.now.getTime() - days * dayMs);
  const projects = await purgeableProjects(db, ago(due.days), ago(1));
  for (const key of projects)
    await db.transaction().execute(async (tx) => {
      const project = await lockProject(tx, key);
      if (!project?.deleted_at) return;
      await requestPurge(tx, wakeups, { ...key, requested_by: "berth" });
      await recordEvent(tx, { ...key, action: "project.purge_requested", target: project.slug });
    });
  return projects.length;
}
