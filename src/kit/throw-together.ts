/** Throws what failed of several pieces of work once all of them have ended; does nothing when none did. */
export function throwTogether(outcomes: readonly PromiseSettledResult<unknown>[]): void {
  const failed = outcomes.filter((outcome) => outcome.status === "rejected").map(({ reason }) => reason as unknown);
  if (failed.length > 0)
    throw failed.length === 1 ? failed[0] : new AggregateError(failed, failed.map(String).join("; "));
}

/** Like `Promise.all`, but it rejects only once all of them have ended. */
export async function allTogether<T extends readonly Promise<unknown>[] | []>(
  works: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  throwTogether(await Promise.allSettled(works));
  return Promise.all(works);
}
