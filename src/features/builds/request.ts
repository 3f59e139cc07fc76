import { newId } from "../../kit/ids.ts";
import type { Tx } from "../../store/database.ts";
import type { Wakeups } from "../../store/wakeups.ts";
import { lockProject } from "../projects/projects.ts";
import { insertBuild, supersedeQueued, type NewBuild } from "./lifecycle-queries.ts";

/** Queues a build, which supersedes the project's earlier queued builds unless nothing of it goes live. */
export async function requestBuild(
  tx: Tx,
  wakeups: Wakeups,
  wanted: Omit<NewBuild, "id"> & { id?: string },
): Promise<{ id: string; number: number }> {
  const id = wanted.id ?? newId("bld");
  await lockProject(tx, wanted);
  if (wanted.rehearse_only !== true) await supersedeQueued(tx, wanted.org_id, wanted.project_id);
  const number = await insertBuild(tx, { ...wanted, id });
  await wakeups.send(tx, "builds", id);
  return { id, number };
}
