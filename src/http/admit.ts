import { missingScope, refusal } from "../contract/access.ts";
import { changes, type Row } from "../contract/table.ts";
import { Refused, type Caller } from "../features/context.ts";
import { addressKey } from "../kit/address-key.ts";
import type { PipelineOptions, PipelineRequest } from "./exchange.ts";
import { isRecent } from "../features/people/people.ts";
import { findNamed } from "./named.ts";
import { parseInput, type ParsedInput } from "./parse.ts";
import type { Rate } from "./rate-limiter.ts";
import { checkWriteOptions } from "./write-options.ts";

/** Returns the token's caller. Refuses the request when the token is missing or invalid, or the organization is suspended. */
export async function authenticate(
  { authenticator, limiter }: Pick<PipelineOptions, "authenticator" | "limiter">,
  request: Pick<PipelineRequest, "token" | "address">,
): Promise<Caller> {
  const { token } = request;
  const found = token === undefined ? undefined : await authenticator.authenticate(token);
  if (found?.suspended === true) throw new Refused("org_suspended");
  if (found !== undefined) return found.caller;
  // Counts only refused requests, so that a client can't use up the rate of other clients behind the same address.
  const counted = limiter.count("refusedPerMinute", addressKey(request.address));
  throw counted.refused ?? new Refused("unauthorized");
}

/** Refuses unless the caller's role and scopes suffice. Looks nothing up, so the refusal reveals nothing about what exists. */
export function requireRights(row: Row, caller: Caller): void {
  const refused = refusal(caller, row);
  if (refused === "insufficient_scope")
    throw new Refused(refused, { error: `The token lacks the scope ${missingScope(caller, row)}.` });
  if (refused !== undefined) throw new Refused(refused);
  if (row.fresh && caller.session_id !== null && !isRecent(caller.fresh_at))
    throw new Refused("fresh_sign_in_required");
}

/** Counts the request, adds the rate limit headers, and refuses the request if the limit is exceeded. */
export function limitRate(
  { limiter }: PipelineOptions,
  row: Row,
  request: PipelineRequest,
  caller: Caller | undefined,
): void {
  const rate: Rate = changes(row) ? "writesPerMinute" : "readsPerMinute";
  const { headers, refused } = limiter.count(rate, caller?.token_id ?? addressKey(request.address));
  request.setHeaders(headers);
  if (refused !== undefined) throw refused;
}

/** Returns the parsed request. An object that the caller may not see is `not_found`, even if the request is also malformed. */
export async function parse(
  { platform }: PipelineOptions,
  row: Row,
  request: PipelineRequest,
  caller: Caller | undefined,
): Promise<ParsedInput> {
  try {
    const input = parseInput(row, request);
    if (input instanceof Refused) throw input;
    if (changes(row)) checkWriteOptions(request);
    return input;
  } catch (error) {
    const isMalformed = error instanceof Refused && error.code === "invalid_request";
    if (isMalformed && caller && row.names !== null) {
      const found = await findNamed(platform.db, row, caller, request.params);
      if (found === undefined) throw new Refused("not_found");
    }
    throw error;
  }
}
