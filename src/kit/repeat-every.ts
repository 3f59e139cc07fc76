/**
 * Calls `look` periodically, but never while an earlier call is running; the next call makes up for one that failed. Returns a function
 * that stops it. It does not keep the process alive.
 */
export function repeatEvery(periodMs: number, look: () => Promise<void>): () => void {
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    void look()
      .catch(() => {})
      .finally(() => (isLooking = false));
  }, periodMs).unref();
  return () => clearInterval(timer);
}
