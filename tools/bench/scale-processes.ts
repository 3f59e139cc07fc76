import { HttpsNames } from "../../src/features/certificates/certificates.ts";
import { createReconcilers } from "../../src/daemon/reconcilers.ts";
import type { Role } from "../../src/daemon/roles.ts";
import { silentLog } from "../../src/kit/log.ts";
import { latencyBucketsMs, type EdgeUsage } from "../../src/ports/edge.ts";
import { createDriver, type Driver } from "../../src/reconcile/driver.ts";
import { metricsTask } from "../../src/reconcile/metrics/metrics-task.ts";
import type { Platform } from "../../src/reconcile/platform.ts";
import { openDatabase } from "../../src/store/database.ts";
import { openWakeups } from "../../src/store/wakeups.ts";
import { edgeDouble } from "../../test/support/port-doubles.ts";
import type { ReleasePlatform } from "../../test/support/releases.ts";
import { addedProject } from "./scale-rows.ts";

interface ProcessOptions {
  readonly name: string;
  readonly roles: readonly Role[];
  /** How many projects have had visitors since the last query of the edge. */
  readonly visited: number;
}

// Fewer connections than a process may open, because the tests' server accepts 300 in all.
const connections = { edge: 3, other: 1 };

/** Starts everything that a process of Berth with these roles does by itself, with its own connections. Its edge accepts every table. */
export async function startProcess(
  { platform, api }: ReleasePlatform,
  { name, roles, visited }: ProcessOptions,
): Promise<{ stop(): Promise<void> }> {
  const { connection } = api.database;
  const max = roles.includes("edge") ? connections.edge : connections.other;
  const limits = { max, connectionTimeoutMillis: 60_000 };
  const { db, close } = openDatabase({ connection: { ...connection, ...limits }, log: silentLog });
  const wakeups = await openWakeups({ connection, log: silentLog });
  const measure = async () => Array.from({ length: visited }, (_, at) => usageOf(name, at + 1));
  const own: Platform = {
    ...{ ...platform, db, wakeups, machine: name, owner: name, httpsNames: new HttpsNames() },
    ports: { ...platform.ports, edge: edgeDouble({ measure }) },
    settings: { ...platform.settings, monitors: { ...platform.settings.monitors, machine: name, dataDir: "/" } },
  };
  const self = () => ({ name, owner: name, roles, url: "http://127.0.0.1:1" });
  const driver = createReconcilers(own, { roles, git: () => null, self });
  await driver.start();
  return {
    async stop() {
      await driver.stop();
      await wakeups.close();
      await close();
    },
  };
}

/** Starts the task that stores the usage of the primary's applications, which the tests' platform leaves out. */
export async function startMetrics({ platform }: ReleasePlatform): Promise<Driver> {
  const measure = async (workload_id: string) => [
    { workload_id, ordinal: 0, attempt: 1, cpu_seconds: performance.now() / 1e6, memory_bytes: 5e7, processes: 1 },
  ];
  const runtime = { ...platform.ports.runtime, measure };
  const tasks = [metricsTask({ ...platform, ports: { ...platform.ports, runtime } })];
  const driver = createDriver({ tasks, wakeups: platform.wakeups, log: silentLog });
  await driver.start();
  return driver;
}

let requests = 0;

/** Returns the counts of a project that has had more visitors. */
export function usageOf(counter: string, number: number): EdgeUsage {
  requests += 1;
  const latency_buckets = [...latencyBucketsMs, Infinity].map(() => requests);
  const bytes = { bytes_in: requests, bytes_out: requests };
  return {
    ...{ counter, project_id: addedProject(number), requests, by_class: { "2": requests } },
    ...{ ...bytes, latency_buckets, latency_sum_ms: requests },
  };
}
