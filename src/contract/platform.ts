import { z } from "zod";
import { metricsRanges } from "./metrics.ts";
import { checkStatuses } from "./status.ts";
import { failure } from "./failure.ts";
import { id, ofProject, slugParam, timestamp, row } from "./table.ts";

const count = z.number().int();
const projectNames = { organization: z.string(), project: z.string() };

/** The sum of all applications' limits, and the capacity of the machines. */
const share = z.object({ requested: z.number(), available: z.number() });

const machine = z.object({
  name: z.string(),
  /** The roles of its control plane; empty while it does not report. */
  roles: z.array(z.string()),
  version: z.string(),
  started_at: timestamp,
  /** Uptime of its control plane. */
  uptime_seconds: count,
  seen_at: timestamp,
  cpus: count,
  memory_bytes: count,
  runtime: z.string(),
  network: z.string(),
  isolation: z.array(z.string()),
  missing: z.array(z.object({ part: z.string(), effect: z.string(), remedy: z.string() })),
  disk: z.object({
    /** What is used and what is free; without the blocks that the file system keeps for root. */
    total_bytes: count,
    available_bytes: count,
    /** Usage of the data folder by kind of data; null until the first measurement. */
    used_bytes: z.record(z.string(), count).nullable(),
    measured_at: timestamp.nullable(),
  }),
});

const versions = z.object({
  version: z.string(),
  commit: z.string().nullable(),
  /** The newest released version, if it is newer; null also where `BERTH_RELEASE_URL` is not set. */
  newer: z.string().nullable(),
  /** Empty when the platform runs from a clone. */
  installed: z.array(
    z.object({
      version: z.string(),
      commit: z.string().nullable(),
      /** Whether the next start uses it. */
      current: z.boolean(),
      /** Processes that run from it. Applications keep theirs until they are deployed again. */
      processes: count,
    }),
  ),
  /** Migrations that wait for `platform.finalize`. */
  unfinalized: z.array(z.string()),
  /** The newest upgrade; null when there was none. */
  upgrade: z
    .object({
      from: z.string(),
      to: z.string().nullable(),
      status: z.enum(["in_progress", "done", "failed", "went_back"]),
      /** Why it failed or went back. */
      reason: z.string().nullable(),
      steps: z.array(z.object({ step: z.string(), at: timestamp })),
    })
    .nullable(),
});

/** A backup of the platform itself. */
const backup = z.object({
  id,
  origin: z.enum(["manual", "daily"]),
  status: z.enum(["running", "completed", "failed"]),
  created_at: timestamp,
  finished_at: timestamp.nullable(),
  /** The moment that it shows. */
  taken_at: timestamp.nullable(),
  version: z.string().nullable(),
  /** The public half of the recovery key that opens it. */
  recipient: z.string().nullable(),
  storage: z.string().nullable(),
  size_bytes: count.nullable(),
  sha256: z.string().nullable(),
  /** Why it failed, or which repositories are left out. */
  problem: z.string().nullable(),
});

const overview = z.object({
  version: z.string(),
  /** Of the sources that the control plane was built from; null if it does not know. */
  commit: z.string().nullable(),
  /** The newest released version, if it is newer. */
  newer_version: z.string().nullable(),
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
  /** Over the last 24 hours, worst first. */
  most_failing: z.array(
    z.object({
      ...projectNames,
      /** Responses with status 500 or above. */
      errors: count,
      /** Of replicas, while they started or later. */
      crashes: count,
      failed_deployments: count,
      failed_cron_runs: count,
    }),
  ),
  /** Over the last 24 hours, by mean time to the response's head. */
  slowest: z.array(z.object({ ...projectNames, requests: count, mean_ms: z.number() })),
  /** The newest drill of each database that has one: those that did not pass first, then the newest; at most 10. */
  last_drills: z.array(
    z.object({
      ...projectNames,
      status: z.enum(["running", "passed", "mismatch", "failed"]),
      created_at: timestamp,
      problem: z.string().nullable(),
    }),
  ),
  machines: z.array(machine),
});

const nullableNumber = z.number().nullable();

/** In buckets of the same times; null where nothing was measured. */
const platformMetrics = z.object({
  range: z.enum(metricsRanges),
  bucket_seconds: count,
  times: z.array(timestamp),
  machines: z.array(
    z.object({
      name: z.string(),
      cpus: count,
      memory_bytes: count,
      disk_bytes: count,
      /** Means of what is in use; of the disk, the most. */
      used: z.object({
        cpus: z.array(nullableNumber),
        memory_bytes: z.array(nullableNumber),
        disk_bytes: z.array(nullableNumber),
      }),
    }),
  ),
  /** What all edges answered for all projects; `errors` have status 500 or above. */
  edges: z.object({ requests: z.array(count), errors: z.array(count), bytes_out: z.array(count) }),
});

const projectParams = slugParam.extend({ org: z.string().max(100) });

const runtimeOfProject = z.object({
  /** Where the active deployment runs; null while nothing is live. */
  runtime: z.string().nullable(),
  /** The platform's runtimes. New projects start in the first one. */
  available: z.array(z.string()),
  /** The newest move; null when there was none. */
  move: z
    .object({
      to: z.string(),
      build_id: id,
      requested_at: timestamp,
      status: z.enum(["building", "deploying", "done", "failed"]),
      failure: failure.nullable(),
    })
    .nullable(),
});

const pooledMachine = z.object({
  id: z.string(),
  name: z.string(),
  address: z.string(),
  role: z.enum(["manager", "worker"]),
  state: z.enum(["ready", "down", "unknown", "disconnected"]),
  /** False: the machine is drained and gets no new replicas. */
  takes_replicas: z.boolean(),
  /** Whether its firewall keeps containers away from the operator's networks. A machine without it gets no replicas. */
  guarded: z.boolean(),
  replicas: count,
  cpus: z.number(),
  memory_bytes: count,
  version: z.string(),
});

const machineParams = z.object({ machine: z.string().min(1).max(100) });

export const rows = [
  row({
    name: "platform.versions",
    request: "GET /v1/platform/versions",
    may: "operator platform:read",
    result: versions,
    summary: "Show the installed versions of Berth, what runs from each, and how the newest upgrade went",
  }),
  row({
    name: "platform.upgrade",
    request: "POST /v1/platform/upgrade",
    may: "operator deployments:write",
    approval: true,
    body: z.strictObject({
      /** A version, the address of a release, or an absolute path on the platform's machine; default: the newest version. */
      source: z
        .string()
        .min(1)
        .max(1000)
        // It is shown to whoever may read the history.
        .refine((source) => !/:\/\/.*@/.test(source), "The address of a release must hold no user or password.")
        .optional(),
      /** Do not back the platform up before, for example because the storage of backups is away. */
      without_backup: z.boolean().optional(),
    }),
    result: versions,
    errors: ["conflict"],
    activity: "org.platform_upgraded",
    waits: true,
    summary: "Upgrade the platform to a signed release; it goes back by itself if the new version does not serve",
  }),
  row({
    name: "platform.finalize",
    request: "POST /v1/platform/finalize",
    may: "operator deployments:write",
    approval: true,
    result: versions,
    errors: ["conflict"],
    activity: "org.platform_finalized",
    waits: true,
    summary: "Apply the migrations after which the version before can no longer run: there is no way back then",
  }),
  row({
    name: "platform.backups",
    request: "GET /v1/platform/backups",
    may: "operator platform:read",
    result: z.object({ backups: z.array(backup) }),
    summary: "List the backups of the platform itself: its database, keys, settings and repositories",
  }),
  row({
    name: "platform.back_up",
    request: "POST /v1/platform/backups",
    may: "operator deployments:write",
    result: backup,
    success: [201],
    errors: ["operation_in_progress", "conflict"],
    activity: "org.platform_backup_requested",
    summary: "Start a backup of the platform itself, encrypted to the recovery key; it continues after the response",
  }),
  row({
    ...ofProject,
    name: "platform.runtime",
    request: "GET /v1/orgs/:org/projects/:slug/runtime",
    may: "operator platform:read",
    params: projectParams,
    result: runtimeOfProject,
    summary: "Show the runtime of a project's active deployment, and the result of its last move",
  }),
  row({
    ...ofProject,
    name: "platform.move",
    request: "PUT /v1/orgs/:org/projects/:slug/runtime",
    may: "operator deployments:write",
    params: projectParams,
    body: z.strictObject({ runtime: z.string().min(1).max(40) }),
    result: runtimeOfProject,
    success: [201],
    errors: ["conflict", "nothing_to_deploy", "deploy_in_progress", "storage_full"],
    activity: "project.moved",
    summary: "Move a project to another runtime: build its live commit for it, and switch once it is healthy",
  }),
  row({
    name: "platform.machines",
    request: "GET /v1/platform/machines",
    may: "operator platform:read",
    result: z.object({ machines: z.array(pooledMachine) }),
    summary: "List the machines of the swarm that runs replicas; empty where everything runs on one machine",
  }),
  row({
    name: "platform.join",
    request: "POST /v1/platform/machines",
    may: "operator deployments:write",
    approval: true,
    fresh: true,
    result: z.object({ script: z.string().nullable() }),
    secret: "script",
    errors: ["conflict"],
    activity: "org.machine_join_shown",
    summary: "Show the shell script that joins another machine to the swarm; it contains secrets",
  }),
  row({
    name: "platform.drain",
    request: "PUT /v1/platform/machines/:machine",
    may: "operator deployments:write",
    params: machineParams,
    body: z.strictObject({ takes_replicas: z.boolean() }),
    result: z.object({
      /** Projects whose replicas there are being moved to other machines by a health-checked restart. */
      moving: count,
    }),
    errors: ["conflict"],
    activity: "org.machine_changed",
    waits: true,
    summary:
      "Drain a machine of the swarm (its replicas start on other machines before they stop here), or use it again",
  }),
  row({
    name: "platform.dismiss",
    request: "DELETE /v1/platform/machines/:machine",
    may: "operator deployments:write",
    approval: true,
    params: machineParams,
    errors: ["conflict"],
    activity: "org.machine_removed",
    waits: true,
    summary: "Remove a drained or lost machine from the swarm",
  }),
  row({
    name: "platform.metrics",
    request: "GET /v1/platform/metrics",
    may: "operator platform:read",
    query: z.object({ range: z.enum(metricsRanges).default("1h") }),
    result: platformMetrics,
    summary: "Show what the machines and the edges of the platform did over time",
  }),
  row({
    name: "platform.overview",
    request: "GET /v1/platform/overview",
    may: "operator platform:read",
    result: overview,
    summary: "Show what runs on the platform, how much of the machines it uses, and which projects fail most",
  }),
] as const;
