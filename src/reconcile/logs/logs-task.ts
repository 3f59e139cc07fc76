import { outputOwners } from "../../features/deployments/deployments.ts";
import { createFaultIsolation } from "../../kit/fault-isolation.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import type { Instance } from "../../ports/runtime.ts";
import type { Task, Platform } from "../platform.ts";
import { createRedactors, type OutputOwner } from "../redactors.ts";

// High enough that one application's flood delays few others.
const maxConcurrency = 8;

/** A workload whose output is complete in the log, and the state of its output at that time. */
interface Read {
  readonly owner: OutputOwner & { readonly number: number };
  readonly process: string;
  marks: string;
}

/** Copies applications' output into their projects' logs. */
export function logsTask(platform: Platform): Task {
  const read = new Map<string, Read>();
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
      const workloads = Map.groupBy(await platform.ports.runtime.observe(), ({ workload_id }) => workload_id);
      for (const id of read.keys()) if (!workloads.has(id)) read.delete(id);
      const written = [...workloads].filter(([id, instances]) => read.get(id)?.marks !== marksOf(instances));
      const unknown = written.flatMap(([id]) => (read.has(id) ? [] : [id]));
      for (const { workload_id, ...found } of await outputOwners(platform.db, unknown))
        read.set(workload_id, { ...found, marks: "" });
      let failed = 0;
      await mapWithConcurrency(written, maxConcurrency, async ([id, instances]) => {
        const known = read.get(id);
        if (known === undefined) return;
        const { owner, process } = known;
        const { project_id, number: deployment } = owner;
        const source = { workload_id: id, project_id, deployment, process, instances };
        const ingest = () => platform.ingestOutput({ ...source, redactor: () => redactors(owner) });
        if (await runIsolated(id, ingest)) known.marks = marksOf(instances);
        else failed += 1;
      });
      return { detail: `${workloads.size} workloads${failed > 0 ? `, ${failed} could not be read` : ""}` };
    },
  };
}

/** Returns a string that stays the same as long as none of these instances writes anything. */
function marksOf(instances: readonly Instance[]): string {
  return instances.map(({ ordinal, attempt, output_mark }) => `${ordinal}.${attempt}=${output_mark}`).join();
}
