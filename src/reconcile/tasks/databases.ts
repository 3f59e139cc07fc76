import {
  databaseFailed,
  databaseReady,
  specOf,
  takeDatabase,
  wantedDatabases,
  type DatabaseRow,
} from "../../features/database/database.ts";
import { holdLease, releaseDeadLeases, type Lease } from "../../store/leases.ts";
import type { Task } from "../driver.ts";
import type { World } from "../world.ts";

/** Makes the databases that were asked for, and keeps all of them running. */
export function databasesTask(world: World): Task {
  return {
    name: "databases",
    periodMs: 5000,
    topics: ["databases"],
    async run(signal) {
      await releaseDeadLeases(world.db, "project_database");
      const rows = await wantedDatabases(world.db);
      let down = 0;
      for (const row of rows) {
        if (signal.aborted) break;
        if (await isFine(world, row)) continue;
        down += 1;
        await mend(world, row, signal);
      }
      return { detail: down === 0 ? `${rows.length} running` : `${rows.length} wanted, ${down} had to be started` };
    },
  };
}

async function isFine(world: World, row: DatabaseRow): Promise<boolean> {
  if (row.status === "provisioning") return false;
  const seen = await world.ports.postgresHost.observe(specOf(world.vault, row));
  return seen.state === "running";
}

async function mend(world: World, row: DatabaseRow, signal: AbortSignal): Promise<void> {
  const lease = await takeDatabase(world.db, row.id, world.owner);
  if (lease === undefined) return;
  try {
    const endpoint = await holdLease(world.db, lease, signal, () =>
      world.ports.postgresHost.ensure(specOf(world.vault, row)),
    );
    await ready(world, row, lease, endpoint);
  } catch (error) {
    world.log.error({ err: error, database: row.id }, "a database could not be started; it will be tried again");
    const summary = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    world.log.debug({ summary }, "the reason as the host gave it");
    await databaseFailed(world.db, lease, {
      stage: "boot",
      code: "database_failed",
      summary: "The database could not be started.",
      hint: "Ask again; the operator's log says why.",
      log_tail: [],
    });
  }
  await world.wakeups.send(world.db, "outcomes", row.id);
}

async function ready(
  world: World,
  row: DatabaseRow,
  lease: Lease,
  endpoint: Parameters<typeof databaseReady>[2],
): Promise<void> {
  await world.db.transaction().execute(async (tx) => {
    if (!(await databaseReady(tx, lease, endpoint))) return;
    // The application learns of a new database, or of a new port, by a restart with the new variables.
    if (row.port === endpoint.port) return;
    await tx
      .updateTable("project")
      .set({ variables_changed_at: new Date().toISOString() })
      .where("id", "=", row.project_id)
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom("deployment")
            .select("deployment.id")
            .whereRef("deployment.project_id", "=", "project.id")
            .where("deployment.status", "=", "active"),
        ),
      )
      .execute();
    await world.wakeups.send(tx, "releases", row.project_id);
  });
}
