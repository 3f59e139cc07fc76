/** How many lines a project's log takes in a second, over all of its replicas. */
export interface LineBudget {
  /** Those of these lines that the log still takes; the others are counted as dropped. */
  admit(lines: readonly string[]): readonly string[];
  /**
   * How many lines were dropped and not told yet: once the second in which that happened is over, or `now`. Whoever asks tells them.
   */
  takeDropped(when: { readonly now: boolean }): number;
}

interface Second {
  readonly endsAtMs: number;
  left: number;
  dropped: number;
}

const secondMs = 1000;
const manyProjects = 10_000;

/** Returns the budget of a project. It outlives deployments: an application that floods its log does not get more by crashing. */
export function createLineBudgets(linesPerSecond: number): (projectId: string) => LineBudget {
  const seconds = new Map<string, Second>();
  return (projectId) => budgetOf(projectId, seconds, linesPerSecond);
}

function budgetOf(projectId: string, seconds: Map<string, Second>, linesPerSecond: number): LineBudget {
  const current = (): Second => {
    const known = seconds.get(projectId);
    if (known !== undefined && (performance.now() < known.endsAtMs || known.dropped > 0)) return known;
    const fresh = { endsAtMs: performance.now() + secondMs, left: linesPerSecond, dropped: 0 };
    if (seconds.size > manyProjects) forgetOld(seconds);
    seconds.set(projectId, fresh);
    return fresh;
  };
  return {
    admit(lines) {
      const second = current();
      const kept = lines.slice(0, second.left);
      second.left -= kept.length;
      second.dropped += lines.length - kept.length;
      return kept;
    },
    takeDropped({ now }) {
      const second = seconds.get(projectId);
      if (second === undefined || (!now && performance.now() < second.endsAtMs)) return 0;
      const { dropped } = second;
      second.dropped = 0;
      return dropped;
    },
  };
}

function forgetOld(seconds: Map<string, Second>): void {
  for (const [id, second] of seconds)
    if (second.endsAtMs < performance.now() && second.dropped === 0) seconds.delete(id);
}
