import { setTimeout as sleep } from "node:timers/promises";

/** Waits at most `timeoutMs` until `work` settles. Returns false when it is still pending then; rejects if it rejects in time. */
export async function settlesWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const over = new AbortController();
  const late = sleep(timeoutMs, false, { signal: over.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    over.abort();
  }
}
