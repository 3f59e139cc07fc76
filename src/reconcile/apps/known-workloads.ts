import { changedWorkloads, type WorkloadRow } from "../../features/deployments/deployments.ts";
import type { Platform } from "../platform.ts";

export type KnownWorkloads = ReturnType<typeof createKnownWorkloads>;

/** The workloads of this machine by id, as the rows say. Each reading asks the database only for projects that changed since the last. */
export function createKnownWorkloads({ db, machine }: Pick<Platform, "db" | "machine">) {
  const byProject = new Map<string, readonly WorkloadRow[]>();
  let byId: ReadonlyMap<string, WorkloadRow> = new Map();
  let since: string | null = null;

  function take({ projects, workloads }: Awaited<ReturnType<typeof changedWorkloads>>): void {
    if (projects.length === 0) return;
    const rows = Map.groupBy(workloads, ({ project_id }) => project_id);
    for (const id of projects) byProject.delete(id);
    for (const [id, found] of rows) byProject.set(id, found);
    byId = new Map([...byProject.values()].flat().map((row) => [row.id, row]));
  }

  /** `running`: what the runtime has. Its rows are read even where nothing says that this machine ought to run it. */
  return async (running: Iterable<string>): Promise<ReadonlyMap<string, WorkloadRow>> => {
    const changes = await changedWorkloads(db, machine, { since });
    take(changes);
    since = changes.snapshot;
    const others = [...running].filter((id) => !byId.has(id));
    if (others.length > 0) take(await changedWorkloads(db, machine, { ids: others }));
    return byId;
  };
}
