import { outputOwners } from "../../features/deployments/deployments.ts";
import { createFaultIsolation } from "../../kit/fault-isolation.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import type { Task } from "../driver.ts";
import { createRedactors, type OutputOwner } from "../redactors.ts";
import type { Platform } from "../platform.ts";

// Enough that one application's flood keeps few others waiting.
const workloadsAtOnce = 8;

/** Moves what applications write into their projects' logs. */
export function logsTask(platform: Platform): Task {
  const owners = new Map<string, OutputOwner & { readonly number: number }>();
  const redactors = createRedactors(platform);
  const runIsolated = createFaultIsolation(
    platform.log,
    "an application's output could not be collected; it will be tried again",
  );
  return {
    name: "logs",
    periodMs: 500,
    topics: ["logs"],
    async run() {
      const ids = await platform.ports.runtime.list();
      for (const id of owners.keys()) if (!ids.includes(id)) owners.delete(id);
      const unknown = ids.filter((id) => !owners.has(id));
      for (const owner of await outputOwners(platform.db, unknown)) owners.set(owner.id, owner);
      let failed = 0;
      await mapWithConcurrency([...owners.values()], workloadsAtOnce, async (owner) => {
        const { id, project_id, number } = owner;
        const source = { workload_id: id, project_id, deployment: number, redactor: () => redactors(owner) };
        if (!(await runIsolated(id, () => platform.ingestOutput(source)))) failed += 1;
      });
      return { detail: `${ids.length} workloads${failed > 0 ? `, ${failed} could not be read` : ""}` };
    },
  };
}
