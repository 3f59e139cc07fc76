const pauseMs = 1500;

/** Loads a part of the dashboard on demand: waits for a platform that is unreachable, and reloads the page after an update. */
export function loadPart<T>(load: () => Promise<T>): Promise<T> {
  return load().catch(async () => {
    while (!(await isReachable())) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    return load().catch(() => {
      location.reload();
      return new Promise<never>(() => {});
    });
  });
}

function isReachable(): Promise<boolean> {
  return fetch("/", { method: "HEAD", headers: { accept: "text/html" } }).then(
    ({ ok }) => ok,
    () => false,
  );
}
