import { redactor } from "../kit/redact.ts";
import type { RuntimeLine } from "../ports/log-store.ts";
import type { Instance } from "../ports/runtime.ts";
import type { World } from "./world.ts";

/** Whose output it is, and what must not be seen of it. */
export interface OutputSource {
  readonly workload_id: string;
  readonly project_id: string;
  readonly deployment: number;
  readonly secrets: readonly string[];
}

// One at a time per workload: the logs task and a release that wants the newest lines may ask together.
const underWay = new Map<string, Promise<void>>();

/** Moves what the workload's instances wrote into the project's log, without secrets, and lets the runtime forget it. */
export async function ingestOutput(world: World, source: OutputSource): Promise<void> {
  const before = underWay.get(source.workload_id) ?? Promise.resolve();
  const mine = before.catch(() => {}).then(() => ingestAll(world, source));
  underWay.set(source.workload_id, mine);
  try {
    await mine;
  } finally {
    if (underWay.get(source.workload_id) === mine) underWay.delete(source.workload_id);
  }
}

async function ingestAll(world: World, source: OutputSource): Promise<void> {
  const redact = redactor(source.secrets);
  for (const instance of await world.ports.runtime.observe(source.workload_id)) {
    while (await ingestChunk(world, source, instance, redact));
  }
}

/** True when there may be more. */
async function ingestChunk(
  world: World,
  source: OutputSource,
  instance: Instance,
  redact: (text: string) => string,
): Promise<boolean> {
  const { runtime, logStore } = world.ports;
  const name = `${instance.workload_id}/${instance.ordinal}/${instance.attempt}`;
  const position = await logStore.readPosition(name);
  const chunk = await runtime.readOutput(instance, position);
  if (chunk.lines.length === 0 && chunk.dropped_bytes === 0) return false;
  const at = world.clock.now().toISOString();
  const stamp = (text: string): RuntimeLine => ({ at, deployment: source.deployment, replica: instance.ordinal, text });
  const lines = chunk.lines.map((text) => stamp(redact(text)));
  if (chunk.dropped_bytes > 0)
    lines.push(stamp(`[dropped ${chunk.dropped_bytes} bytes: the application writes faster than logs are kept]`));
  await logStore.appendRuntime(source.project_id, lines, { instance: name, cursor: chunk.cursor });
  await runtime.discardOutput(instance, chunk.cursor);
  return true;
}
