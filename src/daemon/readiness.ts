import { sql } from "kysely";
import { diskFault } from "../kit/disk-fault.ts";
import type { ReadyCheck } from "../http/health.ts";
import type { Driver } from "../reconcile/driver.ts";
import type { Platform } from "../reconcile/platform.ts";
import type { Role } from "./roles.ts";

/** Returns the checks of `/readyz`: the database, the disk and the reconcilers; git and the edge if this process has those roles. */
export function readinessChecks(
  platform: Platform,
  reconcilers: Driver,
  { roles, git }: { readonly roles: readonly Role[]; readonly git: { readonly port: number } | null },
): readonly ReadyCheck[] {
  const checks: readonly ReadyCheck[] = [
    {
      name: "database",
      async check() {
        await sql`select 1`.execute(platform.db);
        return platform.wakeups.isListening() ? null : "The database's notifications do not arrive.";
      },
    },
    {
      name: "disk",
      async check() {
        const error = await platform.ports.dataDisk.probeWrite().catch((reason: unknown) => reason);
        if (error === undefined) return null;
        return diskFault(error) === "full" ? "The data folder's disk is full." : "The data folder cannot be written.";
      },
    },
    { name: "git", check: async () => ((git?.port ?? 0) > 0 ? null : "git over SSH is not open yet.") },
    {
      name: "edge",
      async check() {
        const status = await platform.ports.edge.observe();
        return status.running ? null : "The edge does not run.";
      },
    },
    {
      name: "reconcilers",
      async check() {
        const tasks = reconcilers.status();
        const waiting = tasks.filter((task) => task.last_ok_at === null).map((task) => task.name);
        const failing = tasks.filter((task) => task.failing).map((task) => task.name);
        if (failing.length > 0) return `Failing: ${failing.join(", ")}.`;
        return waiting.length > 0 ? `Tasks that have not run yet: ${waiting.join(", ")}.` : null;
      },
    },
  ];
  return checks.filter(({ name }) => !(name === "git" || name === "edge") || roles.includes(name));
}
