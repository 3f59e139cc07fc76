import { workloadRows, type WorkloadRow } from "../../features/deployments/deployments.ts";
import type { Task } from "../driver.ts";
import { ingestOutput } from "../ingest.ts";
import { secretsOf, workloadOf } from "../workload.ts";
import type { World } from "../world.ts";

/** Moves what applications write into their projects' logs. */
export function logsTask(world: World): Task {
  // What may not be seen of a deployment never changes: its variables are pinned. Kept so that each second costs no decryption.
  const secrets = new Map<string, readonly string[]>();
  return {
    name: "logs",
    periodMs: 500,
    topics: ["logs"],
    async run() {
      const ids = await world.ports.runtime.list();
      const unknown = ids.filter((id) => !secrets.has(id));
      const rows = unknown.length > 0 || ids.length > 0 ? await workloadRows(world.db, ids) : [];
      for (const id of secrets.keys()) if (!ids.includes(id)) secrets.delete(id);
      for (const row of rows as WorkloadRow[]) {
        if (!ids.includes(row.id)) continue;
        if (!secrets.has(row.id)) secrets.set(row.id, secretsOf(await workloadOf(world, row)));
        await ingestOutput(world, {
          workload_id: row.id,
          project_id: row.project_id,
          deployment: row.number,
          secrets: secrets.get(row.id) ?? [],
        });
      }
      return { detail: `${ids.length} workloads` };
    },
  };
}
