/** Work that remains after a build has ended. Only the project's next build waits for it. */
export interface Upkeep {
  /** Aborts when the platform stops. */
  readonly signal: AbortSignal;
  /** Runs these one after the other. Their errors do not fail the build; the next start removes what they leave behind. */
  begin(projectId: string, works: readonly (() => Promise<void>)[]): void;
  /** Resolves when no work of the project is in progress. */
  of(projectId: string): Promise<void>;
  /** Resolves when no work is in progress. */
  all(): Promise<void>;
  /** Aborts current work and skips the rest. */
  stop(): Promise<void>;
}

export function createUpkeep(): Upkeep {
  const under = new Map<string, Promise<void>>();
  const stopping = new AbortController();
  const all = async () => void (await Promise.all(under.values()));
  return {
    signal: stopping.signal,
    begin(projectId, works) {
      const work = runInTurn(works, stopping.signal);
      under.set(projectId, work);
      void work.then(() => under.get(projectId) === work && under.delete(projectId));
    },
    of: (projectId) => under.get(projectId) ?? Promise.resolve(),
    all,
    stop() {
      stopping.abort();
      return all();
    },
  };
}

async function runInTurn(works: readonly (() => Promise<void>)[], signal: AbortSignal): Promise<void> {
  for (const work of works) if (!signal.aborted) await work().catch(() => {});
}
