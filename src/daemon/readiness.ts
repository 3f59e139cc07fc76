import { sql } from "kysely";
import { diskFault } from "../kit/disk-fault.ts";
import { shareRuns } from "../kit/share-runs.ts";
import { missingParts } from "../reconcile/missing-parts.ts";
import type { GitServers } from "../git/git-servers.ts";
import type { ReadyCheck } from "../http/health.ts";
import type { Driver } from "../reconcile/driver.ts";
import type { Platform } from "../reconcile/platform.ts";
import type { Role } from "./roles.ts";

/** Returns the checks of `/readyz`: the database, the disk and the reconcilers; git and the edge if this process has those roles. */
export function readinessChecks(
  platform: Platform,
  reconcilers: Driver,
  { roles, git }: { readonly roles: readonly Role[]; readonly git: Pick<GitServers, "port" | "problem"> | null },
): readonly ReadyCheck[] {
  const findMissing = shareRuns(() => missingParts(platform, { withBackups: false }));
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
    {
      name: "data_folder",
      async check() {
        const missing = (await findMissing()).filter(({ status }) => status === "fail");
        const [first] = missing;
        return first === undefined ? null : `${missing.length} missing: ${first.detail} /v1/status lists all of them.`;
      },
    },
    {
      name: "git",
      check: async () => ((git?.port ?? 0) > 0 ? null : (git?.problem ?? "git over SSH is not open yet.")),
    },
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
  const roleOf: Readonly<Record<string, Role>> = { git: "git", edge: "edge", data_folder: "git" };
  return checks.filter(({ name }) => roleOf[name] === undefined || roles.includes(roleOf[name]));
}
