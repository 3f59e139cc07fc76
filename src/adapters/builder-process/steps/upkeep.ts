/** Work that is left when a build has ended, for which nobody needs to wait but the project's next build. */
export interface Upkeep {
  /** Does these one after the other. Their faults are not the build's; what they leave behind, the next start sweeps. */
  begin(projectId: string, works: readonly (() => Promise<void>)[]): void;
  /** Resolves when nothing of the project is under way. */
  of(projectId: string): Promise<void>;
  /** Resolves when nothing is under way. */
  all(): Promise<void>;
}

export function createUpkeep(): Upkeep {
  const under = new Map<string, Promise<void>>();
  return {
    begin(projectId, works) {
      const work = runExclusive(works);
      under.set(projectId, work);
      void work.then(() => under.get(projectId) === work && under.delete(projectId));
    },
    of: (projectId) => under.get(projectId) ?? Promise.resolve(),
    all: async () => void (await Promise.all(under.values())),
  };
}

async function runExclusive(works: readonly (() => Promise<void>)[]): Promise<void> {
  for (const each of works) await each().catch(() => {});
}
