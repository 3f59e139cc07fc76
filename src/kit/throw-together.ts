/** Throws the error of the rejected outcomes, several as one AggregateError; does nothing when none was rejected. */
export function throwTogether(outcomes: readonly PromiseSettledResult<unknown>[]): void {
  const failed = outcomes.filter((outcome) => outcome.status === "rejected").map(({ reason }) => reason as unknown);
  if (failed.length > 0)
    throw failed.length === 1 ? failed[0] : new AggregateError(failed, failed.map(String).join("; "));
}

/** Like `Promise.all`, but rejects only after all promises have settled. */
export async function allTogether<T extends readonly Promise<unknown>[] | []>(
  works: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  throwTogether(await Promise.allSettled(works));
  return Promise.all(works);
}
