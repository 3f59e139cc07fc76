import { limits as apiLimits, type ApiLimits } from "../contract/limits.ts";
import type { ChangeLimits } from "./change-slots.ts";
import type { PipelineOptions } from "./exchange.ts";
import { createCallerCount, createOpenCount } from "./open-count.ts";
import type { RateLimits } from "./rate-limiter.ts";

export interface HttpLimits extends RateLimits {
  readonly bodyBytes: number;
  readonly urlBytes: number;
  readonly headersTimeoutMs: number;
  /** Time limit for receiving a whole request; mounts are exempt. */
  readonly requestTimeoutMs: number;
  /** How long a request waits for the outcome of a change. After that the client has to ask again. */
  readonly outcomeDeadlineMs: number;
  /** How many streams each token may have open. */
  readonly streamsPerToken: number;
  /** How many streams each organization may have open, with all its tokens. */
  readonly streamsPerOrganization: number;
  /** How many requests of large rows each token may have open, until the response has been received. */
  readonly largeReadsPerToken: number;
  /** The same for each organization, with all its tokens. */
  readonly largeReadsPerOrganization: number;
  /** How many uploads, changes and plans of a source each organization may have in progress. */
  readonly sourceRequestsPerOrganization: number;
  readonly changes: ChangeLimits;
  /** How long a client may stop reading its response; streams and mounts are exempt. */
  readonly stalledAnswerTimeoutMs: number;
}

// Semantics, "Limits".
export const standardLimits: HttpLimits = {
  bodyBytes: apiLimits.request_body_bytes,
  urlBytes: apiLimits.url_bytes,
  headersTimeoutMs: 15_000,
  requestTimeoutMs: 30_000,
  outcomeDeadlineMs: 240_000,
  readsPerMinute: apiLimits.reads_per_minute,
  writesPerMinute: apiLimits.writes_per_minute,
  refusedPerMinute: apiLimits.writes_per_minute,
  streamsPerToken: apiLimits.streams_per_token,
  streamsPerOrganization: apiLimits.streams_per_organization,
  largeReadsPerToken: apiLimits.large_reads_per_token,
  largeReadsPerOrganization: apiLimits.large_reads_per_organization,
  sourceRequestsPerOrganization: apiLimits.source_requests_per_organization,
  // Requests have 10 connections to the database, of which 3 always remain for reads.
  changes: { all: 7, perOwner: 3, waitingPerOwner: 200, waitMs: 20_000 },
  stalledAnswerTimeoutMs: 30_000,
};

/** Returns the limits in force, as the API reports them. */
export function toldLimits(limits: HttpLimits): Partial<ApiLimits> {
  return {
    request_body_bytes: limits.bodyBytes,
    row_body_bytes: Math.max(apiLimits.row_body_bytes, limits.bodyBytes),
    url_bytes: limits.urlBytes,
    reads_per_minute: limits.readsPerMinute,
    writes_per_minute: limits.writesPerMinute,
    streams_per_token: limits.streamsPerToken,
    streams_per_organization: limits.streamsPerOrganization,
    large_reads_per_token: limits.largeReadsPerToken,
    large_reads_per_organization: limits.largeReadsPerOrganization,
    source_requests_per_organization: limits.sourceRequestsPerOrganization,
  };
}

export function createOpenCounts(
  limits: HttpLimits,
): Pick<PipelineOptions, "streams" | "large" | "sourceRequests" | "largeBodies"> {
  return {
    streams: createCallerCount(limits.streamsPerToken, limits.streamsPerOrganization, "streams"),
    large: createCallerCount(
      limits.largeReadsPerToken,
      limits.largeReadsPerOrganization,
      "reads of logs, tables or runs",
    ),
    sourceRequests: createOpenCount(limits.sourceRequestsPerOrganization, "uploads, changes or plans", "organization"),
    largeBodies: createOpenCount(limits.sourceRequestsPerOrganization, "requests with large bodies", "organization"),
  };
}
