import { missingScope, refusal } from "../contract/access.ts";
import { changes, type Row } from "../contract/table.ts";
import { Refused, type Caller } from "../features/context.ts";
import { addressKey } from "../kit/address-key.ts";
import type { PipelineOptions, PipelineRequest } from "./exchange.ts";
import { findNamed } from "./named.ts";
import { parseInput, type ParsedInput } from "./parse.ts";
import type { Rate } from "./rate-limiter.ts";
import { checkWriteOptions } from "./write-options.ts";

/** The caller that the token stands for. Refuses without a valid token or when the organization is suspended. */
export async function authenticate(
  { authenticator, limiter }: PipelineOptions,
  request: PipelineRequest,
): Promise<Caller> {
  const { token } = request;
  const found = token === undefined ? undefined : await authenticator.authenticate(token);
  if (found?.suspended === true) throw new Refused("org_suspended");
  if (found !== undefined) return found.caller;
  // Only refused requests count, so one client cannot use up the rate of others behind the same address.
  const counted = limiter.count("refusedPerMinute", addressKey(request.address));
  throw counted.refused ?? new Refused("unauthorized");
}

/** Refuses unless role and scopes suffice. Looks nothing up, so the refusal reveals nothing about what exists. */
export function requireRights(row: Row, caller: Caller): void {
  const refused = refusal(caller, row);
  if (refused === "insufficient_scope")
    throw new Refused(refused, { error: `The token lacks the scope ${missingScope(caller, row)}.` });
  if (refused !== undefined) throw new Refused(refused);
}

/** Counts the request, tells the client its limits, and refuses what exceeds them. */
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

/** The parsed request. What the caller cannot see is `not_found`, whatever else is wrong with the request. */
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
