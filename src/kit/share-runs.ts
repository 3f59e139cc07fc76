/** Lets calls that arrive while `work` runs share one later run, so that each gets a result of work that began after the call. */
export function shareRuns<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const begin = (): Promise<T> => {
    next = undefined;
    const run = work();
    running = run;
    const end = () => {
      if (running === run) running = undefined;
    };
    run.then(end, end);
    return run;
  };
  return () => (running === undefined ? begin() : (next ??= running.then(begin, begin)));
}
