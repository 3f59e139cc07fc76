import { setTimeout as sleep } from "node:timers/promises";

/** Calls `probe` until it returns something, or the time is over (undefined). The pause grows from `firstMs` to `atMostMs`. */
export async function until<T>(
  probe: () => Promise<T | undefined> | T | undefined,
  limits: { timeoutMs: number; firstMs?: number; atMostMs?: number; signal?: AbortSignal },
): Promise<T | undefined> {
  const end = Date.now() + limits.timeoutMs;
  let pauseMs = limits.firstMs ?? 10;
  while (!limits.signal?.aborted) {
    const answer = await probe();
    if (answer !== undefined) return answer;
    const leftMs = end - Date.now();
    if (leftMs <= 0) return undefined;
    await sleep(Math.min(pauseMs, leftMs));
    pauseMs = Math.min(pauseMs * 2, limits.atMostMs ?? 250);
  }
  return undefined;
}
