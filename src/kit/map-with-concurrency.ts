/** Runs `work` on the items in order, at most `limit` at a time. Rejects with the first error, after all started work has settled. */
export async function mapWithConcurrency<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const left = items.values();
  const workers = Array.from({ length: Math.min(limit, items.length) }, async () => {
    for (const item of left) await work(item);
  });
  const failed = (await Promise.allSettled(workers)).find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
}
