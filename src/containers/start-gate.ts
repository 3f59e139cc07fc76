export interface StartGate {
  /** Runs `work`; rejects without running it once the gate is closed. */
  pass<T>(work: () => Promise<T>): Promise<T>;
  /** Rejects further starts and resolves when none is in progress. */
  close(): Promise<void>;
}

export function createStartGate(): StartGate {
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;
  return {
    async pass(work) {
      if (isClosed) throw new Error("Berth is being removed from this machine, so no container can start");
      const started = work();
      underWay.add(started);
      try {
        return await started;
      } finally {
        underWay.delete(started);
      }
    },
    async close() {
      isClosed = true;
      await Promise.allSettled(underWay);
    },
  };
}
