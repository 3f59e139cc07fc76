import { changedWorkloads, type WorkloadRow } from "../../features/deployments/deployments.ts";
import type { Platform } from "../platform.ts";

export type KnownWorkloads = ReturnType<typeof createKnownWorkloads>;

/** Returns a function that reads this machine's workloads by id. Each call queries only the projects that changed since the last. */
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

  /** `running`: the workloads that the runtime has. Their rows are read even if the database does not assign them to this machine. */
  return async (running: Iterable<string>): Promise<ReadonlyMap<string, WorkloadRow>> => {
    const changes = await changedWorkloads(db, machine, { since });
    take(changes);
    since = changes.snapshot;
    const others = [...running].filter((id) => !byId.has(id));
    if (others.length > 0) take(await changedWorkloads(db, machine, { ids: others }));
    return byId;
  };
}
