import { specOf, wantedDatabases } from "../../features/database/database.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import type { Platform } from "../platform.ts";

// A PostgreSQL instance starts in less than a second and recovers in seconds. One that needs longer must not keep its application away.
const patienceMs = 60_000;
const maxConcurrency = 8;

/**
 * Says which projects' databases do not run yet although they should, in the first minute after the control plane's start: after a reboot
 * an application that starts before its database ends at once and is reported as crashed. Later starts never wait.
 */
export function createDatabasesComingUp(
  platform: Pick<Platform, "db" | "vault" | "ports">,
): (projectIds: ReadonlySet<string>) => Promise<ReadonlySet<string>> {
  const endMs = performance.now() + patienceMs;
  return async (projectIds) => {
    const missing = new Set<string>();
    if (projectIds.size === 0 || performance.now() > endMs) return missing;
    const rows = (await wantedDatabases(platform.db)).filter(
      ({ project_id, status }) => status === "ready" && projectIds.has(project_id),
    );
    await mapWithConcurrency(rows, maxConcurrency, async (row) => {
      const { state } = await platform.ports.postgresHost.observe(specOf(platform.vault, row));
      if (state !== "running") missing.add(row.project_id);
    });
    return missing;
  };
}
