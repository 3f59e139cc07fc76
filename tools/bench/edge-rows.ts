import { sql } from "kysely";
import { awaitEdges } from "../../src/features/routes/routes.ts";
import { until } from "../../src/kit/until.ts";
import type { Platform } from "../../src/reconcile/platform.ts";
import { startPlatform } from "../../test/e2e/platform.ts";
import { startGrownPlatform, type GrownPlatform } from "./grown-platform.ts";
import { benchSize, median, timeRow, type BenchRow } from "./row.ts";

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
    await addProjects({ ...grown, machine: "elsewhere" }, 1, hosts);
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

/**
 * Adds numbered copies of the first project as rows: history, and an active deployment whose replica runs on the machine.
 */
async function addProjects({ db, machine }: Pick<Platform, "db" | "machine">, from: number, to: number): Promise<void> {
  const copies = sql`cross join generate_series(${sql.lit(from)}, ${sql.lit(to)}) as copy(n)`;
  const first = sql`(select t, t.org_id from project t order by number limit 1)`;
  await db.transaction().execute(async (tx) => {
    // Without triggers and foreign keys, which would take long; the triggers' rows are inserted below.
    await sql`set local session_replication_role = replica`.execute(tx);
    await sql`insert into project overriding system value select (jsonb_populate_record(p.t, jsonb_build_object(
        'id', 'prj_scale_' || n, 'number', 1000000 + n, 'slug', 'scale-' || n, 'hostname', 'scale-' || n || '.apps.test'))).*
      from ${first} p ${copies}`.execute(tx);
    await sql`insert into build select (jsonb_populate_record(b.t, jsonb_build_object(
        'id', 'bld_scale_' || n || '_' || k, 'project_id', 'prj_scale_' || n, 'number', k))).*
      from (select t from build t where status = 'succeeded' limit 1) b ${copies} cross join generate_series(1, 3) as build_number(k)`.execute(
      tx,
    );
    // Later than the platform's start: for older deployments the platform would compare branches with repositories, which these projects
    // lack.
    await sql`insert into deployment select (jsonb_populate_record(d.t, jsonb_build_object(
        'id', 'dep_scale_' || n || '_' || k, 'project_id', 'prj_scale_' || n, 'number', k, 'build_id', 'bld_scale_' || n || '_' || k,
        'status', case k when 3 then 'active' else 'retired' end, 'activated_at', now() + interval '1 day'))).*
      from (select t from deployment t where status = 'active' limit 1) d ${copies} cross join generate_series(1, 3) as deployment_number(k)`.execute(
      tx,
    );
    await sql`insert into replica (org_id, project_id, deployment_id, ordinal, attempt, ready_attempt, state, machine, host, port)
      select p.org_id, 'prj_scale_' || n, 'dep_scale_' || n || '_3', 0, 1, 1, 'running', ${machine},
        '10.0.' || (n / 250) || '.' || (n % 250), 3000 from ${first} p ${copies}`.execute(tx);
    await sql`insert into route_change (project_id, changed_by) select 'prj_scale_' || n, pg_current_xact_id() from ${first} p ${copies}`.execute(
      tx,
    );
  });
  await sql`analyze`.execute(db);
}

const addedDeployment = (number: number): string => `dep_scale_${number}_3`;
