import { until } from "../../src/kit/until.ts";

/**
 * How long a test waits for what must come. It only keeps a test from hanging for ever: on a busy machine everything takes ten times as
 * long. A time that is a rule of the product is a number of its own.
 */
export const guardMs = 300_000;

/** Asks until the answer is a truthy one, and gives it; throws, with what was waited for, when none comes. */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  what: string,
  timeoutMs = guardMs,
): Promise<Exclude<T, false | null | undefined>> {
  const found = await until(async () => (await probe()) || undefined, { timeoutMs, firstMs: 20 });
  if (found === undefined) throw new Error(`did not happen within ${timeoutMs / 1000} s: ${what}`);
  return found as Exclude<T, false | null | undefined>;
}
