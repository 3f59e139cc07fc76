/**
 * Calls `look` in this period, but not while an earlier call is under way; a call that fails is left to the next. Returns what stops it. It
 * does not keep the process alive.
 */
export function lookEvery(periodMs: number, look: () => Promise<void>): () => void {
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
