import { z } from "zod";
import { instant, ofProject, optionalQueryInteger, queryInteger, timestamp, row } from "./table.ts";

/** A status or a class of them: `404`, `5xx`. */
const status = z
  .string()
  .regex(/^[1-5](?:\d\d|xx)$/, "use a status such as 404, or a class such as 5xx")
  .optional();

const filters = {
  /** Part of the path, or of its folded form, ignoring case. */
  path: z.string().min(1).max(200).optional(),
  status,
  /** Only requests that took at least this long. */
  slow_ms: optionalQueryInteger(0, 3_600_000),
  since: instant.optional(),
  until: instant.optional(),
};

export const requestSorts = ["count", "slow", "errors"] as const;

export const rows = [
  row({
    ...ofProject,
    name: "requests.list",
    request: "GET /v1/projects/:slug/requests",
    may: "member logs:read",
    query: z.object({ ...filters, limit: queryInteger(1, 1000, 100) }),
    result: z.object({
      requests: z.array(
        z.object({
          at: timestamp,
          method: z.string(),
          /** Without the query string. */
          path: z.string(),
          status: z.number().int(),
          /** Time from the request's head to the response's head. */
          ms: z.number(),
          bytes: z.number().int(),
          /** Null if no replica answered. */
          deployment: z.number().int().nullable(),
          replica: z.number().int().nullable(),
          request_id: z.string().nullable(),
          /** For how many requests this one stands, when only a part of many was kept. */
          weight: z.number().int(),
        }),
      ),
    }),
    summary: "List the requests that the edge answered, newest first; filters by path, status, duration and time",
  }),
  row({
    ...ofProject,
    name: "requests.paths",
    request: "GET /v1/projects/:slug/requests/paths",
    may: "member logs:read",
    query: z.object({ ...filters, sort: z.enum(requestSorts).default("count"), limit: queryInteger(1, 200, 50) }),
    result: z.object({
      /** The oldest request that was counted; null without any. */
      from: timestamp.nullable(),
      requests: z.number().int(),
      /** Whether only a random part of the requests was kept, so that counts are estimates. */
      sampled: z.boolean(),
      paths: z.array(
        z.object({
          method: z.string(),
          /** Numbers and ids in it are replaced by `:id`. */
          path: z.string(),
          count: z.number().int(),
          p50_ms: z.number(),
          p95_ms: z.number(),
          /** Responses with status 500 or above. */
          errors: z.number().int(),
        }),
      ),
    }),
    summary: "Show each path's number of requests, latency and errors; ids in paths are folded to `:id`",
  }),
] as const;
