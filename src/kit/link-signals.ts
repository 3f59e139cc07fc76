export interface LinkedSignal {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Unties it from its sources. Whatever waits for it then goes with it. */
  release(): void;
}

/**
 * A signal that aborts with any of these, for a piece of work that ends before they do. AbortSignal.any has no end of its own: as long as
 * a source lives, Node keeps every such signal that has a listener, and all that the listeners hold.
 */
export function linkSignals(...sources: readonly AbortSignal[]): LinkedSignal {
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
    abort: (reason) => own.abort(reason),
    release: () => ties.forEach((untie) => untie()),
  };
}
