import { z } from "zod";
import { id, ofProject, timestamp, row } from "./table.ts";

export const metricsRanges = ["1h", "24h", "7d"] as const;

const milliseconds = z.number().nullable();

/** Responses by the first digit of their status. */
const answers = z.object({
  "1xx": z.number().int(),
  "2xx": z.number().int(),
  "3xx": z.number().int(),
  "4xx": z.number().int(),
  "5xx": z.number().int(),
});

/** Time from a request to its response's head; null without requests. */
const latency = z.object({ mean: milliseconds, p50: milliseconds, p95: milliseconds, p99: milliseconds });

const traffic = {
  requests: z.number().int(),
  requests_per_second: z.number(),
  answers,
  /** Responses with status 500 or above. */
  errors: z.number().int(),
  /** Their share of the requests, 0 to 1. */
  error_rate: z.number(),
  latency_ms: latency,
  bytes_in: z.number().int(),
  bytes_out: z.number().int(),
};

/** Timings of one probe of the first page, each from the start of its phase. `tls_ms` is null for a page served over plain HTTP. */
const pageTimes = {
  dns_ms: milliseconds,
  connect_ms: milliseconds,
  tls_ms: milliseconds,
  first_byte_ms: milliseconds,
  total_ms: milliseconds,
};

/** Means over the probes of a bucket; `slowest_ms` is the slowest total. */
const pageLoad = z.object({
  looks: z.number().int(),
  failed: z.number().int(),
  ...pageTimes,
  slowest_ms: milliseconds,
});

const replicaBucket = z.object({
  at: timestamp,
  /** Processors in use, on average; null without measurements. */
  cpus: z.number().nullable(),
  memory_bytes: z.number().int().nullable(),
  memory_bytes_most: z.number().int().nullable(),
  processes: z.number().int().nullable(),
  restarts: z.number().int(),
});

const replica = z.object({
  process: z.string(),
  replica: z.number().int(),
  deployment: z.number().int().nullable(),
  ready: z.boolean(),
  restarts: z.number().int(),
  measured_at: timestamp.nullable(),
  memory_bytes: z.number().int().nullable(),
  processes: z.number().int().nullable(),
  buckets: z.array(replicaBucket),
});

export const rows = [
  row({
    ...ofProject,
    name: "metrics.get",
    request: "GET /v1/projects/:slug/metrics",
    may: "member metrics:read",
    query: z.object({ range: z.enum(metricsRanges).default("1h") }),
    result: z.object({
      range: z.enum(metricsRanges),
      from: timestamp,
      to: timestamp,
      bucket_seconds: z.number().int(),
      total: z.object({ ...traffic, page_load: pageLoad }),
      buckets: z.array(z.object({ at: timestamp, ...traffic, page_load: pageLoad })),
      /** The newest probe of the application's first page. */
      page: z
        .object({
          at: timestamp,
          ok: z.boolean(),
          http_status: z.number().int().nullable(),
          failure: z.string().nullable(),
          ...pageTimes,
        })
        .nullable(),
      replicas: z.array(replica),
      /** How much memory each replica may use. */
      memory_limit_bytes: z.number().int(),
      /** Replicas that crashed, by bucket, oldest first; without those of buckets in which none did. */
      crashes: z.array(z.object({ at: timestamp, count: z.number().int(), out_of_memory: z.number().int() })),
      /** Deployments that went live in the range, oldest first. */
      deployments: z.array(
        z.object({
          id,
          number: z.number().int(),
          at: timestamp,
          trigger: z.enum(["push", "upload", "follow", "redeploy", "rollback", "variables", "restart"]),
          commit: z.string(),
        }),
      ),
    }),
    summary: "Show traffic, latency, page load times, processor and memory use, in buckets of time",
  }),
] as const;
