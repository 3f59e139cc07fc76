import { missingScope, refusal } from "../contract/access.ts";
import { limits } from "../contract/limits.ts";
import { changes, nameOf, type Row, type SuccessStatus } from "../contract/table.ts";
import { Refused, type Caller, type ServerEvent, type HandlerPlatform } from "../features/context.ts";
import { addressKey } from "../kit/address-key.ts";
import type { Log } from "../kit/log.ts";
import type { Db } from "../store/database.ts";
import type { Authenticator } from "./authenticator.ts";
import { Call } from "./call.ts";
import { claimKey, finders, type HeldKey } from "./handlers.ts";
import type { OpenCount } from "./open-count.ts";
import { parseInput, type ParsedInput, type RawInput } from "./parse.ts";
import type { Rate, RateLimiter } from "./rate-limiter.ts";

/** What a request is answered with; `text` is JSON, absent for 204. */
export interface Answer {
  readonly status: SuccessStatus;
  readonly text?: string;
  /** Instead of a text. `end` is to be called when it is over. */
  readonly stream?: {
    readonly events: AsyncIterable<ServerEvent>;
    readonly signal: AbortSignal;
    readonly end: () => void;
  };
}

export interface PipelineRequest extends RawInput {
  /** The bearer token, when one was sent. */
  readonly token: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly lastEventId: string | undefined;
  /** Where the request comes from. */
  readonly address: string;
  readonly requestId: string;
  /** Aborts when the client leaves. */
  readonly gone: () => AbortSignal;
  /** Calls back once when the answer is sent or the client has left. */
  readonly whenOver: (call: () => void) => void;
  /** Adds to the answer's headers, also when it is an error. */
  readonly setHeaders: (headers: Readonly<Record<string, string>>) => void;
}

export interface PipelineOptions {
  readonly platform: HandlerPlatform;
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly limiter: RateLimiter;
  readonly streams: OpenCount;
  /** Requests of large rows that are not yet answered, or whose answers are not yet with their clients. */
  readonly large: OpenCount;
  /** Aborts when the platform stops. */
  readonly closing: AbortSignal;
  /** How long any outcome is waited for. */
  readonly outcomeDeadlineMs: number;
  readonly log: Log;
}

/**
 * Everything between a parsed body and its answer, the same for every row: who calls, may they, does the request make sense, may it
 * go ahead without a human, do it in one transaction with its activity row, and let out only what the row declares. Throws `Refused`
 * and faults. The handler runs before the gate of approvals, in a transaction that a closed gate rolls back: so whatever the
 * request's own state forbids is told first, and no row needs its checks written twice.
 */
export async function answer(options: PipelineOptions, row: Row, request: PipelineRequest): Promise<Answer> {
  const caller = row.access === "public" ? undefined : await authenticate(options, request);
  if (caller !== undefined) mayCall(row, caller);
  limitRate(options, row, request, caller);
  const close = row.large && caller !== undefined ? options.large.open(caller.token_id) : undefined;
  if (close !== undefined) request.whenOver(close);
  const input = await parse(options, row, request, caller);
  const call = new Call(options, row, request, caller);
  if (caller === undefined) return call.read(input);
  if (!changes(row)) {
    const read = await call.read(input);
    // Streams are counted by themselves.
    if (read.stream !== undefined) close?.();
    return read;
  }
  if (isDryRun(request)) return call.dryRun(input);
  return changeOnce({ options, row, request, caller }, (key) => call.change(input, key));
}

async function authenticate({ authenticator, limiter }: PipelineOptions, request: PipelineRequest): Promise<Caller> {
  const { token } = request;
  const found = token === undefined ? undefined : await authenticator.authenticate(token);
  if (found?.suspended === true) throw new Refused("org_suspended");
  if (found !== undefined) return found.caller;
  // Only what is refused anyway is counted, so nobody can use up what others of the same address need.
  const counted = limiter.count("refusedPerMinute", addressKey(request.address));
  throw counted.refused ?? new Refused("unauthorized");
}

function mayCall(row: Row, caller: Caller): void {
  const refused = refusal(caller, row);
  if (refused === "insufficient_scope")
    throw new Refused(refused, { error: `The token lacks the scope ${missingScope(caller, row)}.` });
  if (refused !== undefined) throw new Refused(refused);
}

function limitRate({ limiter }: PipelineOptions, row: Row, request: PipelineRequest, caller: Caller | undefined): void {
  const rate: Rate = changes(row) ? "writesPerMinute" : "readsPerMinute";
  const { headers, refused } = limiter.count(rate, caller?.token_id ?? addressKey(request.address));
  request.setHeaders(headers);
  if (refused !== undefined) throw refused;
}

// What a caller cannot see is missing, whatever else is wrong with the request.
async function parse(
  { platform }: PipelineOptions,
  row: Row,
  request: PipelineRequest,
  caller: Caller | undefined,
): Promise<ParsedInput> {
  try {
    const input = parseInput(row, request);
    if (input instanceof Refused) throw input;
    if (changes(row)) checkOptions(request);
    return input;
  } catch (error) {
    const isMalformed = error instanceof Refused && error.code === "invalid_request";
    if (isMalformed && caller && !(await exists(platform.db, row, request, caller))) throw new Refused("not_found");
    throw error;
  }
}

async function exists(db: Db, row: Row, request: PipelineRequest, caller: Caller): Promise<boolean> {
  if (row.names === null) return true;
  return (await finders[row.names](db, caller, nameOf(row, request.params) ?? "")) !== undefined;
}

/** What every write takes beside its own parameters. */
function checkOptions(request: PipelineRequest): void {
  isDryRun(request);
  keyOf(request);
}

/** Every write takes `?dry_run=true`: were it ignored by some, whoever relied on it would change something. */
function isDryRun({ query }: PipelineRequest): boolean {
  const { dry_run: given } = (query ?? {}) as Readonly<Record<string, unknown>>;
  if (given === undefined || given === "false") return false;
  if (given === "true") return true;
  const message = "must be true or false";
  throw new Refused("invalid_request", { error: `dry_run: ${message}`, details: [{ path: "dry_run", message }] });
}

interface Write {
  readonly options: PipelineOptions;
  readonly row: Row;
  readonly request: PipelineRequest;
  readonly caller: Caller;
}

// How long a request may be under way before its key is taken for lost; a row that waits marks its key when it has changed something.
const holdMs = 60_000;

/** Does a write that has an `Idempotency-Key` once, and answers its repetitions with what it was answered. */
async function changeOnce(
  { options, row, request, caller }: Write,
  change: (key?: HeldKey) => Promise<Answer>,
): Promise<Answer> {
  const key = keyOf(request);
  if (key === undefined) return change();
  const { method, path } = row;
  const { params, query, body } = request;
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

function keyOf({ idempotencyKey: key }: PipelineRequest): string | undefined {
  if (key === undefined) return undefined;
  if (key.length <= limits.idempotency_key_characters && /^[\x21-\x7e]+$/.test(key)) return key;
  const message = `must be 1 to ${limits.idempotency_key_characters} visible ASCII characters`;
  throw new Refused("invalid_request", {
    error: `Idempotency-Key: ${message}`,
    details: [{ path: "Idempotency-Key", message }],
  });
}
