import { limits } from "../contract/limits.ts";
import { Refused } from "../features/context.ts";
import type { PipelineRequest } from "./exchange.ts";

/** Refuses a malformed `dry_run` or `Idempotency-Key`, which every write accepts. */
export function checkWriteOptions(request: PipelineRequest): void {
  isDryRun(request);
  idempotencyKeyOf(request);
}

export function isDryRun({ query }: PipelineRequest): boolean {
  const { dry_run: given } = (query ?? {}) as Readonly<Record<string, unknown>>;
  if (given === undefined || given === "false") return false;
  if (given === "true") return true;
  const message = "must be true or false";
  throw new Refused("invalid_request", { error: `dry_run: ${message}`, details: [{ path: "dry_run", message }] });
}

export function idempotencyKeyOf({ idempotencyKey: key }: PipelineRequest): string | undefined {
  if (key === undefined) return undefined;
  if (key.length <= limits.idempotency_key_characters && /^[\x21-\x7e]+$/.test(key)) return key;
  const message = `must be 1 to ${limits.idempotency_key_characters} visible ASCII characters`;
  throw new Refused("invalid_request", {
    error: `Idempotency-Key: ${message}`,
    details: [{ path: "Idempotency-Key", message }],
  });
}
