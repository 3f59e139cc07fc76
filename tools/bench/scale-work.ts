import { sql } from "kysely";
import {
  certificatesMark,
  changedHostnames,
  servingCertificates,
} from "../../src/features/certificates/certificates.ts";
import { saveControlPlane } from "../../src/features/control-planes/control-planes.ts";
import { nextMinute } from "../../src/features/cron/lifecycle-queries.ts";
import { projectsToRestart, pushedDeployments, takeDeployment } from "../../src/features/deployments/deployments.ts";
import { addPageProbe, addReplicaSamples, addTraffic, schedulePageProbes } from "../../src/features/metrics/metrics.ts";
import { changedWorkloads } from "../../src/features/replicas/replicas.ts";
import { changedRoutes, nextRouteVersion, saveEdge } from "../../src/features/routes/routes.ts";
import type { Db } from "../../src/store/database.ts";
import { nothingInProgress } from "../../test/support/nothing-in-progress.ts";
import { usageOf } from "./scale-processes.ts";
import { addedDeployment, addedProject } from "./scale-rows.ts";

/** The parameters of an installation in the model. */
export interface Installation {
  readonly projects: number;
  readonly machines: number;
  readonly edges: number;
  readonly deploysPerMinute: number;
}

/** A query that the processes of an installation send periodically. */
export interface PeriodicWork {
  readonly name: string;
  /** How often all processes together send it. */
  readonly perSecond: (of: Installation) => number;
  readonly work: (db: Db) => Promise<unknown>;
}

/** How often one deploy changes an edge's routes and wakes the primary's task: start, readiness, switch, end of the old replica. */
const wakesPerDeploy = 5;
const wakes = ({ deploysPerMinute }: Installation) => (wakesPerDeploy * deploysPerMinute) / 60;
/** The number of processes with the role `reconcile`. */
export const reconcilers = 3;
/** The share of projects that have visitors at an edge within 15 seconds. */
export const visitedShare = 0.1;
const batch = 100;

export const periodicWork = (machine: string): readonly PeriodicWork[] => [
  ...workOfAll(),
  ...workOfEdges(),
  ...workOfPrimary(machine),
];

function workOfAll(): readonly PeriodicWork[] {
  const plane = { name: "measured", owner: "bench", roles: ["api"], url: "http://127.0.0.1:1" };
  return [
    {
      name: "a process reports that it lives",
      perSecond: ({ machines }) => machines / 2,
      work: (db) => saveControlPlane(db, plane),
    },
    {
      name: "a process compares certificates",
      perSecond: (of) => of.machines / 3 + of.edges * wakes(of),
      work: (db) => certificatesMark(db),
    },
    {
      name: "a reconciler reads which hostnames changed",
      perSecond: () => reconcilers / 5,
      work: async (db) => changedHostnames(db, await snapshotBeforeChange(db), true),
    },
    { name: "a scheduler looks for the next minute", perSecond: () => reconcilers, work: (db) => nextMinute(db) },
  ];
}

function workOfEdges(): readonly PeriodicWork[] {
  const report = { id: "measured", machine: "measured", kind: "haproxy", route_version: 1, certificate_version: 1 };
  const looked = {
    http_status: 200,
    failure: null,
    dns_ms: 1,
    connect_ms: 1,
    tls_ms: 1,
    first_byte_ms: 1,
    total_ms: 1,
  };
  return [
    {
      name: "an edge reads a changed route and confirms",
      perSecond: (of) => of.edges * (1 / 3 + wakes(of)),
      async work(db) {
        await nextRouteVersion(db);
        await changedRoutes(db, await snapshotBeforeChange(db));
        await saveEdge(db, { ...report, open_requests: {} });
        await sql`select pg_notify('berth', 'edges:measured')`.execute(db);
      },
    },
    {
      name: "an edge finds out which certificates are new",
      perSecond: ({ projects, edges }) => (projects * edges) / (60 * 86_400),
      work: (db) => servingCertificates(db),
    },
    {
      name: `an edge stores what it counted of ${batch} projects`,
      perSecond: ({ projects, edges }) => (edges * projects * visitedShare) / batch / 15,
      work: (db) =>
        addTraffic(
          db,
          numbers.map((each) => usageOf("measured", each)),
          new Date(),
        ),
    },
    {
      name: "an edge stores the probe of a page",
      perSecond: ({ projects }) => projects / 60,
      work: (db) => addPageProbe(db, { org_id: "org", project_id: addedProject(1) }, looked, new Date()),
    },
    {
      name: "an edge looks for projects without probes",
      perSecond: ({ edges }) => edges / 15,
      work: (db) => schedulePageProbes(db, 60),
    },
  ];
}

function workOfPrimary(machine: string): readonly PeriodicWork[] {
  return [
    {
      name: "the primary reads what changed of its workloads",
      perSecond: (of) => 1 / 5 + wakes(of),
      work: async (db) => changedWorkloads(db, machine, { since: await snapshotBeforeChange(db) }),
    },
    {
      name: "the primary looks for a deployment and for changed variables",
      perSecond: (of) => 1 + wakes(of),
      work: async (db) => [await takeDeployment(db, "bench", nothingInProgress), await projectsToRestart(db)],
    },
    {
      name: "the primary compares branches with what serves",
      perSecond: () => 1 / 30,
      work: (db) => pushedDeployments(db, new Date(0)),
    },
    {
      name: `the primary stores what ${batch} replicas use`,
      perSecond: ({ projects }) => projects / batch / 15,
      work: (db) => addReplicaSamples(db, numbers.map(sampleOf), new Date()),
    },
  ];
}

const numbers = Array.from({ length: batch }, (_, at) => at + 1);

/** Returns a snapshot after which one project has changed. */
async function snapshotBeforeChange(db: Db): Promise<string> {
  const { rows } = await sql<{ snapshot: string }>`select pg_current_snapshot()::text as snapshot`.execute(db);
  await sql`select mark_route_changed(${addedProject(1)})`.execute(db);
  return rows[0]?.snapshot ?? "";
}

let used = 0;

function sampleOf(number: number) {
  used += 1;
  return {
    ...{ deployment_id: addedDeployment(number), process: "web", ordinal: 0, attempt: 1 },
    ...{ cpu_seconds: used, memory_bytes: 5e7, processes: 1 },
  };
}
