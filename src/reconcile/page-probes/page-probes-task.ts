import {
  addPageProbe,
  schedulePageProbes,
  claimDuePageProbes,
  type DuePageProbe,
} from "../../features/metrics/metrics.ts";
import type { EdgeEntrance } from "../../ports/edge.ts";
import type { Task, Platform } from "../platform.ts";
import { probePage } from "./probe-page.ts";

const periodMs = 2000;
const enlistEveryMs = 15_000;
const atOnce = 64;

/** Requests the first page of every serving application about once per period, spread evenly over it. */
export function pageProbesTask(platform: Platform): Task {
  const running = new Set<Promise<void>>();
  let enlistedAtMs = -Infinity;
  const { everySeconds } = platform.settings.metrics.pageLooks;

  async function begin(): Promise<number> {
    if (performance.now() - enlistedAtMs > enlistEveryMs) {
      await schedulePageProbes(platform.db, everySeconds);
      enlistedAtMs = performance.now();
    }
    const entrance = await platform.ports.edge.entrance();
    if (entrance === null || running.size >= atOnce) return 0;
    const due = await claimDuePageProbes(platform.db, { everySeconds, limit: atOnce - running.size });
    for (const project of due) {
      const probing: Promise<void> = probe(platform, project, entrance).finally(() => running.delete(probing));
      running.add(probing);
    }
    return due.length;
  }

  return {
    name: "page-probes",
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

async function probe(platform: Platform, project: DuePageProbe, entrance: EdgeEntrance): Promise<void> {
  const { timeoutMs } = platform.settings.metrics.pageLooks;
  const overHttps = entrance.tls_port !== null && platform.httpsNames.has(project.hostname);
  try {
    const result = await probePage({ hostname: project.hostname, entrance, overHttps, timeoutMs }, platform.ports.dns);
    await addPageProbe(platform.db, project, result, platform.clock.now());
  } catch (error) {
    platform.log.warn({ err: error, project: project.project_id }, "could not store the result of a page probe");
  }
}
