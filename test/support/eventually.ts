import { until } from "../../src/kit/until.ts";

/**
 * How long a test waits for an event that must happen. The limit only keeps a test from hanging forever, because a busy machine can be ten
 * times slower. A test of a product's time limit uses its own number.
 */
export const guardMs = 300_000;

/** Polls until the result is truthy, and returns it; throws an error that names `what` after the timeout. */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  what: string,
  timeoutMs = guardMs,
): Promise<Exclude<T, false | null | undefined>> {
  const found = await until(async () => (await probe()) || undefined, { timeoutMs, firstMs: 20 });
  if (found === undefined) throw new Error(`did not happen within ${timeoutMs / 1000} s: ${what}`);
  return found as Exclude<T, false | null | undefined>;
}
