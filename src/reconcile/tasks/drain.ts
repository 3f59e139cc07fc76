import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../ports/runtime.ts";
import type { World } from "../world.ts";

const pollMs = 100;

/** Resolves when the edge has nothing open to these instances any more, or the drain time since `since` is over. */
export async function waitUntilIdle(world: World, instances: readonly Instance[], since: string | null): Promise<void> {
  const end = (since === null ? Date.now() : Date.parse(since)) + world.settings.drainMs;
  const targets = instances.flatMap((instance) =>
    instance.address === null ? [] : [`${instance.address.host}:${instance.address.port}`],
  );
  while (Date.now() < end) {
    const open = await world.ports.edge.openRequests();
    if (targets.every((target) => (open.get(target) ?? 0) === 0)) return;
    await sleep(pollMs);
  }
}
