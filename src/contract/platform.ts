import { z } from "zod";
import { checkStatuses } from "./status.ts";
import { timestamp } from "./fields.ts";
import { row } from "./table.ts";

const count = z.number().int();
const ofProject = { organization: z.string(), project: z.string() };

/** What applications may use at most, against what the machines have. */
const share = z.object({ requested: z.number(), available: z.number() });

const machine = z.object({
  name: z.string(),
  version: z.string(),
  started_at: timestamp,
  /** Of its control plane. */
  uptime_seconds: count,
  seen_at: timestamp,
  cpus: count,
  memory_bytes: count,
  runtime: z.string(),
  network: z.string(),
  isolation: z.array(z.string()),
  missing: z.array(z.object({ part: z.string(), effect: z.string(), remedy: z.string() })),
  disk: z.object({
    total_bytes: count,
    available_bytes: count,
    /** Of the data folder, by kind of data; null until it was measured. */
    used_bytes: z.record(z.string(), count).nullable(),
    measured_at: timestamp.nullable(),
  }),
});

const overview = z.object({
  version: z.string(),
  status: z.enum(checkStatuses),
  open_alerts: count,
  organizations: z.object({ total: count, suspended: count }),
  projects: z.object({ total: count, deleted: count, serving: count }),
  replicas: count,
  /** Since midnight, UTC. */
  deployments_today: z.object({ total: count, succeeded: count, failed: count, in_progress: count }),
  databases: z.object({ total: count, ready: count, failed: count }),
  backups: z.object({ total: count, size_bytes: count }),
  domains: z.object({ total: count, serving: count }),
  cron_jobs: count,
  capacity: z.object({ memory_bytes: share, cpus: share }),
  /** Of the last 24 hours, worst first. */
  most_failing: z.array(
    z.object({
      ...ofProject,
      /** Answers with 500 or above. */
      errors: count,
      crashes: count,
      failed_deployments: count,
      failed_cron_runs: count,
    }),
  ),
  /** Of the last 24 hours, by the mean time to the head of an answer. */
  slowest: z.array(z.object({ ...ofProject, requests: count, mean_ms: z.number() })),
  machines: z.array(machine),
});

export const rows = [
  row({
    name: "platform.overview",
    method: "GET",
    path: "/v1/platform/overview",
    access: "operator",
    scope: "platform:read",
    result: overview,
    success: [200],
    summary: "What runs on the platform, what it uses of its machines, and which projects fail most",
  }),
] as const;
