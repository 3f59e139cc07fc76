/** One action at a time for each workload, in the order they were asked for. */
export function workloadLocks(): <T>(workloadId: string, action: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (workloadId, action) => {
    const before = last.get(workloadId) ?? Promise.resolve();
    const mine = before.then(action, action);
    const settled = mine.catch(() => {});
    last.set(workloadId, settled);
    void settled.then(() => {
      if (last.get(workloadId) === settled) last.delete(workloadId);
    });
    return mine;
  };
}
