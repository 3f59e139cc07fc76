import type { RuntimeLine } from "../../ports/log-store.ts";
import type { Instance } from "../../ports/runtime.ts";
import { createKeyedMutex } from "../../kit/keyed-mutex.ts";
import { createLineBudgets, type LineBudget } from "./line-budget.ts";
import type { Redact } from "../workload.ts";
import type { Platform } from "../platform.ts";

/** Whose output it is, and where to learn what must not be seen of it once it was read. */
export interface OutputSource {
  readonly workload_id: string;
  readonly project_id: string;
  readonly deployment: number;
  redactor(): Promise<Redact>;
}

/** Moves what the workload's instances wrote into the project's log, without secrets, and lets the runtime forget it. */
export type IngestOutput = (source: OutputSource) => Promise<void>;

type IngestPlatform = Pick<Platform, "ports" | "settings" | "clock">;

/** Runs one ingestion per workload at a time: the logs task and a release that needs the newest lines may start it together. */
export function createIngest(platform: IngestPlatform): IngestOutput {
  const runExclusive = createKeyedMutex();
  const budgetOf = createLineBudgets(platform.settings.logLinesPerSecond);
  return (source) => runExclusive(source.workload_id, () => ingestAll(platform, source, budgetOf(source.project_id)));
}

// One that writes faster than anybody reads must not keep the others waiting; the runtime drops what becomes too much.
const chunksAtOnce = 64;

async function ingestAll(platform: IngestPlatform, source: OutputSource, budget: LineBudget): Promise<void> {
  const instances = await platform.ports.runtime.observe(source.workload_id);
  for (const instance of instances) {
    const chunks = instance.state === "exited" ? Infinity : chunksAtOnce;
    for (let read = 0; read < chunks; read += 1) if (!(await ingestChunk(platform, source, instance, budget))) break;
  }
  // Of what has ended nothing comes any more that could bring the number of lost lines along.
  const isOver = instances.every((instance) => instance.state === "exited");
  const dropped = budget.takeDropped({ now: isOver });
  const [first] = instances;
  if (dropped === 0 || first === undefined) return;
  const at = platform.clock.now().toISOString();
  const text = droppedText(dropped);
  await platform.ports.logStore.appendRuntime(source.project_id, [
    { at, deployment: source.deployment, replica: first.ordinal, text },
  ]);
}

function droppedText(lines: number): string {
  return `[dropped ${lines} ${lines === 1 ? "line" : "lines"}: the application writes more lines a second than are kept]`;
}

/** True when there may be more. */
async function ingestChunk(
  platform: IngestPlatform,
  source: OutputSource,
  instance: Instance,
  budget: LineBudget,
): Promise<boolean> {
  const { runtime, logStore } = platform.ports;
  const position = await logStore.readPosition(instance);
  const chunk = await runtime.readOutput(instance, position);
  if (chunk.lines.length === 0 && chunk.dropped_bytes === 0) return false;
  const redact = await source.redactor();
  const at = platform.clock.now().toISOString();
  const stamp = (text: string): RuntimeLine => ({ at, deployment: source.deployment, replica: instance.ordinal, text });
  const dropped = budget.takeDropped({ now: false });
  const kept = budget.admit(chunk.lines);
  const lines = [...(dropped > 0 ? [droppedText(dropped)] : []), ...kept.map(redact)].map(stamp);
  if (chunk.dropped_bytes > 0)
    lines.push(stamp(`[dropped ${chunk.dropped_bytes} bytes: the application writes faster than logs are kept]`));
  await logStore.appendRuntime(source.project_id, lines, { instance, cursor: chunk.cursor });
  await runtime.discardOutput(instance, chunk.cursor);
  return true;
}
