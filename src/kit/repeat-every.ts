/** Calls `look` periodically, never while an earlier call runs. Returns a function that stops it. Does not keep the process alive. */
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
