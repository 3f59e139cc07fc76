export type LinkedSignal = ReturnType<typeof linkSignals>;

/**
 * Returns a signal that aborts with any of the sources and can be released before they end. AbortSignal.any can't: while a source lives,
 * Node keeps every such signal that has a listener, and everything the listeners reference.
 */
export function linkSignals(...sources: readonly AbortSignal[]) {
  const own = new AbortController();
  const ties = sources.map((source) => {
    const abort = () => own.abort(source.reason);
    source.addEventListener("abort", abort, { once: true });
    return () => source.removeEventListener("abort", abort);
  });
  const aborted = sources.find((source) => source.aborted);
  if (aborted) own.abort(aborted.reason);
  return {
    signal: own.signal,
    abort: (reason: unknown) => own.abort(reason),
    /** Removes its listeners from the sources, so that it and its own listeners can be garbage-collected. */
    release: () => ties.forEach((untie) => untie()),
  };
}
