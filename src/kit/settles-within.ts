import { setTimeout as sleep } from "node:timers/promises";

/** Waits until `work` has settled, at most `timeoutMs`. False when it is still under way then; rejects when the work does in time. */
export async function settlesWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const over = new AbortController();
  const late = sleep(timeoutMs, false, { signal: over.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    over.abort();
  }
}
