import { changes, type Row } from "../contract/table.ts";
import type { Caller } from "../features/context.ts";
import { authenticate, limitRate, parse, requireRights } from "./admit.ts";
import { Call } from "./call.ts";
import type { Answer, PipelineOptions, PipelineRequest } from "./exchange.ts";
import { claimKey, type HeldKey } from "../features/idempotency/idempotency.ts";
import { requireWithinProjects } from "./named.ts";
import type { ParsedInput } from "./parse.ts";
import { idempotencyKeyOf, isDryRun } from "./write-options.ts";

/**
 * Handles a request from its parsed body to its response, the same way for every row: authenticates the caller, checks its rights, limits
 * its rate, parses the request, then reads or changes (`call.ts`). Throws `Refused` and faults.
 */
export async function runPipeline(options: PipelineOptions, row: Row, request: PipelineRequest): Promise<Answer> {
  const caller = row.access === "public" ? undefined : await authenticate(options, request);
  if (caller !== undefined) requireRights(row, caller);
  limitRate(options, row, request, caller);
  const close = row.large && caller !== undefined ? options.large.open(caller) : undefined;
  if (close !== undefined) request.whenOver(close);
  if (caller !== undefined) await requireWithinProjects(options.platform.db, row, caller, request.params);
  const input = await parse(options, row, request, caller);
  const end = row.handles_source && caller !== undefined ? options.sourceRequests.open(caller.org_id) : undefined;
  try {
    const answer = await handle({ options, row, request, caller }, input);
    // Streams are counted under their own limit.
    if (answer.stream !== undefined) close?.();
    return answer;
  } finally {
    end?.();
  }
}

async function handle({ options, row, request, caller }: Incoming, input: ParsedInput): Promise<Answer> {
  const call = new Call(options, row, request, caller);
  if (caller !== undefined && changes(row)) {
    if (isDryRun(request)) return call.dryRun(input);
    return changeOnce({ options, row, request, caller }, (key) => call.change(input, key));
  }
  return call.read(input);
}

interface Incoming {
  readonly options: PipelineOptions;
  readonly row: Row;
  readonly request: PipelineRequest;
  readonly caller: Caller | undefined;
}

interface Write extends Incoming {
  readonly caller: Caller;
}

// After this time a request in progress is presumed lost. A row with `waits` marks its key when it commits.
const holdMs = 60_000;

/** Runs a write with an `Idempotency-Key` once, and returns the stored response to repeated requests. */
async function changeOnce(
  { options, row, request, caller }: Write,
  change: (key?: HeldKey) => Promise<Answer>,
): Promise<Answer> {
  const key = idempotencyKeyOf(request);
  if (key === undefined) return change();
  const { method, path } = row;
  const { params, query } = request;
  // A file can be read only once, by its handler.
  const body = row.upload !== null ? null : request.body;
  const same = { method, path, params, query, body };
  const outcome = await claimKey(options.platform, {
    key,
    caller,
    request: same,
    holdMs: row.waits ? options.outcomeDeadlineMs : holdMs,
  });
  if ("replay" in outcome) {
    request.setHeaders({ "idempotency-replayed": "true" });
    return outcome.replay as Answer;
  }
  try {
    return await change(outcome.held);
  } catch (error) {
    await outcome.held.release();
    throw error;
  }
}
