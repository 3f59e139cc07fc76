import { addLook, enlistLooks, takeDueLooks, type DueLook } from "../../features/metrics/metrics.ts";
import type { EdgeEntrance } from "../../ports/edge.ts";
import type { Task } from "../driver.ts";
import { lookAtPage } from "../look-at-page.ts";
import type { World } from "../world.ts";

const periodMs = 2000;
const enlistEveryMs = 15_000;
const atOnce = 64;

/** Looks at the first page of every application that serves, each about once in a period, at moments that are spread over it. */
export function pageLooksTask(world: World): Task {
  const running = new Set<Promise<void>>();
  let enlistedAtMs = -Infinity;
  const { everySeconds } = world.settings.metrics.pageLooks;

  async function begin(): Promise<number> {
    if (performance.now() - enlistedAtMs > enlistEveryMs) {
      await enlistLooks(world.db, everySeconds);
      enlistedAtMs = performance.now();
    }
    const entrance = await world.ports.edge.entrance();
    if (entrance === null || running.size >= atOnce) return 0;
    const due = await takeDueLooks(world.db, { everySeconds, limit: atOnce - running.size });
    for (const project of due) {
      const look: Promise<void> = lookAt(world, project, entrance).finally(() => running.delete(look));
      running.add(look);
    }
    return due.length;
  }

  return {
    name: "page-looks",
    periodMs,
    topics: [],
    async run() {
      if (everySeconds === 0) return { detail: "switched off", againMs: 60_000 };
      const begun = await begin();
      return { detail: `${running.size} under way`, againMs: begun > 0 ? 250 : periodMs };
    },
    async settle() {
      await Promise.all(running);
    },
  };
}

async function lookAt(world: World, project: DueLook, entrance: EdgeEntrance): Promise<void> {
  const { timeoutMs } = world.settings.metrics.pageLooks;
  try {
    const look = await lookAtPage({ hostname: project.hostname, entrance, timeoutMs }, world.ports.dns);
    await addLook(world.db, project, look, world.clock.now());
  } catch (error) {
    world.log.warn({ err: error, project: project.project_id }, "could not note a look at a page");
  }
}
