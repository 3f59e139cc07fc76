import { runningBranches, saveBranch, unknownBranches } from "../../features/branches/branches.ts";
import { databaseOf, serverOf, specOf, wantedDatabases, type DatabaseRow } from "../../features/database/database.ts";
import { markVariablesChanged } from "../../features/env/env.ts";
import { mapWithConcurrency } from "../../kit/map-with-concurrency.ts";
import { PartMissing } from "../../kit/part-missing.ts";
import type { DatabaseEndpoint } from "../../ports/postgres-host.ts";
import type { Resting } from "../databases/databases-task.ts";
import type { Platform } from "../platform.ts";

const maxConcurrency = 2;
// How long one branch may keep the others waiting; it then goes on starting in the background.
const patienceMs = 15_000;

type Branch = Awaited<ReturnType<typeof runningBranches>>[number];

/** Keeps branches running and within their sizes, after the databases of projects. They stop before these lack room on the disk. */
export async function tendBranches(platform: Platform, resting: Resting): Promise<void> {
  const { db, log, ports } = platform;
  const branches = await runningBranches(db);
  if (branches.length === 0) return;
  const { is_low } = await ports.dataDisk.observe();
  const waiting = (await wantedDatabases(db)).some(
    ({ id, status }) => status === "ready" && !ports.postgresHost.hasProcess(id),
  );
  await resting.begin(ports.dataDisk);
  await mapWithConcurrency(branches, maxConcurrency, async (branch) => {
    try {
      if (is_low) return await stopForRoom(platform, branch);
      const runs = ports.postgresHost.hasProcess(branch.id);
      if (runs ? !resting.isResting(branch.id) : !waiting) await tend(platform, branch, resting);
    } catch (error) {
      log.error({ err: error, branch: branch.id }, "could not tend a branch; it will be tried again");
      if (error instanceof PartMissing)
        await saveBranch(db, branch, { status: "failed", problem_code: "part_missing", problem: gone });
    }
  });
}

const gone = "Its data is gone from the data folder.";

const noRoom = {
  problem_code: "storage_full",
  problem: "The platform's disk is short of space. The branch is stopped, and starts again once there is room.",
};
const noProblem = { problem_code: null, problem: null };

async function stopForRoom({ db, ports }: Platform, branch: Branch): Promise<void> {
  await ports.postgresHost.stop(branch.id);
  if (branch.problem_code === null) await saveBranch(db, branch, noRoom);
}

async function tend(platform: Platform, branch: Branch, resting: Resting): Promise<void> {
  const { db, vault, ports } = platform;
  const row = await databaseOf(db, branch.org_id, branch.project_id, branch.name);
  if (row?.id !== branch.id) return;
  const spec = specOf(vault, row);
  const seen = await ports.postgresHost.observe(spec);
  const limitBytes = branch.size_limit_bytes ?? Infinity;
  const size_bytes = seen.state === "running" ? seen.size_bytes : 0;
  const access = seen.state !== "running" || size_bytes <= limitBytes ? "open" : "read_only";
  if (seen.state === "running") {
    await saveBranch(db, branch, { size_bytes, access, ...noProblem });
    // The control plane that started it may have ended before it stored where.
    await saveAddress(platform, branch, row, seen.endpoint);
  }
  if (seen.state === "running" && seen.intact && access === spec.access)
    return resting.rest(branch.id, { bytes: size_bytes, limitBytes });
  const endpoint = await ports.postgresHost.ensure({ ...spec, access }, AbortSignal.timeout(patienceMs));
  await saveAddress(platform, branch, row, endpoint);
}

/** A branch that another program took the port of has another one; its application restarts with the new variables. */
async function saveAddress(platform: Platform, branch: Branch, row: DatabaseRow, now: DatabaseEndpoint): Promise<void> {
  const before = serverOf(row);
  if (before?.host === now.host && before.port === now.port) return;
  await platform.db.transaction().execute(async (tx) => {
    const { org_id, used_by } = branch;
    if (used_by !== null) await markVariablesChanged(platform.wakeups, tx, { org_id, project_id: used_by });
    await saveBranch(tx, branch, now);
  });
}

/** Removes instances of branches that have no row: what is left of a database that was restored to an earlier state. */
export async function sweepBranches({ db, ports }: Platform): Promise<void> {
  const ids = (await ports.postgresHost.list()).filter((id) => id.startsWith("dbb_"));
  for (const id of await unknownBranches(db, ids)) await ports.postgresHost.destroy(id);
}
