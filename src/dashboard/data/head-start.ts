/** Requests that the script in index.html has already started: the session from before a reload, and the first calls of each page. */
interface HeadStart {
  readonly session: Promise<{ readonly token?: string | null }>;
  readonly calls: Calls;
}

/** By path and query. */
type Calls = Record<string, { readonly answer: Promise<Response>; readonly end: AbortController }>;

// How long a response counts as fresh.
const usefulMs = 10_000;

/** Returns the started requests and clears them, so that they are used once. Undefined if the head of the page started none. */
export function takeHeadStart(): HeadStart | undefined {
  const page = globalThis as { berthHeadStart?: HeadStart };
  const { berthHeadStart: found } = page;
  delete page.berthHeadStart;
  return found;
}

/**
 * Returns a `fetch` that answers each of these calls once with the response already requested. Requests that are not used in time are
 * aborted.
 */
export function fetchAfter(calls: Calls): typeof fetch {
  const begun = new Map(Object.entries(calls));
  const end = () => {
    for (const call of begun.values()) call.end.abort();
    begun.clear();
  };
  setTimeout(end, usefulMs);
  return (input, init) => {
    const path = typeof input === "string" ? input.slice(location.origin.length) : "";
    const call = init?.method === "GET" ? begun.get(path) : undefined;
    if (call === undefined) return fetch(input, init);
    begun.delete(path);
    init?.signal?.addEventListener("abort", () => call.end.abort());
    return call.answer.catch(() => fetch(input, init));
  };
}
