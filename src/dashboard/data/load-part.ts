const pauseMs = 1500;

/**
 * Loads a part of the dashboard that comes when it is asked for. While the platform is out of reach it waits; when the part is gone, another
 * version of the platform is there by now, and the page is loaded anew.
 */
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
