import { specOf, wantedDatabases } from "../../features/database/database.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import type { Platform } from "../platform.ts";

// PostgreSQL starts in less than a second and recovers in seconds. A database that needs longer must not hold back its application.
const patienceMs = 60_000;
const maxConcurrency = 8;

/**
 * Returns a function that finds the projects whose database should run but does not yet. It waits only in the first minute after the
 * control plane's start or a project's undelete: an application that starts before its database exits at once and is reported as crashed.
 */
export function createDatabasesComingUp(
  platform: Pick<Platform, "db" | "vault" | "ports" | "clock">,
): (projectIds: ReadonlySet<string>) => Promise<ReadonlySet<string>> {
  const endMs = performance.now() + patienceMs;
  return async (projectIds) => {
    const missing = new Set<string>();
    if (projectIds.size === 0) return missing;
    const isEarly = performance.now() <= endMs;
    const changedSince = platform.clock.now().getTime() - patienceMs;
    const rows = (await wantedDatabases(platform.db)).filter(
      ({ project_id, status, project_updated_at }) =>
        status === "ready" && projectIds.has(project_id) && (isEarly || Date.parse(project_updated_at) > changedSince),
    );
    await mapWithConcurrency(rows, maxConcurrency, async (row) => {
      const { state } = await platform.ports.postgresHost.observe(specOf(platform.vault, row));
      if (state !== "running") missing.add(row.project_id);
    });
    return missing;
  };
}
