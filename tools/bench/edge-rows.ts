import { sql } from "kysely";
import { awaitEdges } from "../../src/features/routes/routes.ts";
import { until } from "../../src/kit/until.ts";
import { startPlatform } from "../../test/e2e/platform.ts";
import { startGrownPlatform, type GrownPlatform } from "./grown-platform.ts";
import { median, timeRow, type BenchRow } from "./row.ts";
import { addProjects, addedDeployment } from "./scale-rows.ts";
import { benchSize } from "./size.ts";

const hosts = benchSize("hosts", 10_000);
const changes = 40;
const goalMs = 50;
const firstTableMs = 600_000;
const confirmMs = 30_000;

/**
 * Measures the time from the commit of one route's change in the control plane's database to the edge's confirmation, with 10,000 hosts as
 * rows.
 */
export async function measureEdgeRows(): Promise<BenchRow[]> {
  const grown = await startGrownPlatform(() => startPlatform());
  try {
    await addProjects({ ...grown, machine: "elsewhere" }, 1, hosts, null);
    return [await measureChanges(grown)];
  } finally {
    await grown.close();
  }
}

async function measureChanges(grown: GrownPlatform): Promise<BenchRow> {
  await confirmed(grown, firstTableMs);
  const times: number[] = [];
  for (let each = 0; each < changes; each += 1) {
    await moveReplica(grown, each);
    const committedAtMs = performance.now();
    await confirmed(grown, confirmMs);
    // Skip the first changes, which run before the code is compiled.
    if (each >= changes / 4) times.push(performance.now() - committedAtMs);
  }
  times.sort((one, other) => one - other);
  const spread = `least ${times[0]?.toFixed(1)}, most ${times.at(-1)?.toFixed(1)}`;
  return timeRow(
    `edge, from the commit of a change to its confirmation, ${hosts} hosts (${spread})`,
    `the goal of ${goalMs} ms`,
    {
      ...{ ours: median(times), theirs: goalMs, goal: 1 },
    },
  );
}

/** Moves one project's replica to another address, as a switch does. */
async function moveReplica({ db }: GrownPlatform, each: number): Promise<void> {
  const deployment = addedDeployment(1 + ((each * 97) % hosts));
  await sql`update replica set port = ${3001 + each} where deployment_id = ${deployment}`.execute(db);
}

/** Also waits for an edge that is busy with its first table for so long that it counts as dead. */
async function confirmed({ db, wakeups }: GrownPlatform, timeoutMs: number): Promise<void> {
  const isConfirmed = async () =>
    (await awaitEdges({ db, wakeups }, { timeoutMs })) === "confirmed" ? true : undefined;
  if ((await until(isConfirmed, { timeoutMs })) === undefined) throw new Error("The edge did not confirm a change.");
}
