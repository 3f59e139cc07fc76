/** Work that is left when a build has ended. Only the project's next build waits for it. */
export interface Upkeep {
  /** Aborts when the platform stops. */
  readonly signal: AbortSignal;
  /** Does these one after the other. Their faults are not the build's; what they leave behind, the next start sweeps. */
  begin(projectId: string, works: readonly (() => Promise<void>)[]): void;
  /** Resolves when nothing of the project is under way. */
  of(projectId: string): Promise<void>;
  /** Resolves when nothing is under way. */
  all(): Promise<void>;
  /** Gives up what is under way and what comes. */
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
