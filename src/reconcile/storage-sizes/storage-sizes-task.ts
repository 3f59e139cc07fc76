import { saveStorageSize, takeDueStorage } from "../../features/metrics/metrics.ts";
import type { Task } from "../driver.ts";
import type { Platform } from "../platform.ts";

const periodMs = 60_000;
const budgetMs = 10_000;

/** Measures each project's storage folder, now and then and one at a time: a folder may hold a million files. */
export function storageSizesTask(platform: Platform): Task {
  return {
    name: "storage-sizes",
    periodMs,
    topics: [],
    async run(signal) {
      const begunAtMs = performance.now();
      let measured = 0;
      while (!signal.aborted && performance.now() - begunAtMs < budgetMs) {
        const due = await takeDueStorage(platform.db, platform.settings.metrics.storageEverySeconds);
        if (due === undefined) break;
        const bytes = await platform.ports.runtime.storageBytes(due);
        if (bytes !== null) await saveStorageSize(platform.db, due.project_id, bytes);
        measured += 1;
      }
      return { detail: `${measured} measured` };
    },
  };
}
