/** What the head of the page has begun to fetch: the session of before a reload, and what each page begins with. */
interface HeadStart {
  readonly session: Promise<{ readonly token?: string | null }>;
  readonly calls: Calls;
}

/** By path and query. */
type Calls = Record<string, { readonly answer: Promise<Response>; readonly end: AbortController }>;

// As long as an answer counts as new.
const usefulMs = 10_000;

/** Takes it: nothing else of the page finds it any more. Undefined where the head fetched nothing. */
export function takeHeadStart(): HeadStart | undefined {
  const page = globalThis as { berthHeadStart?: HeadStart };
  const { berthHeadStart: found } = page;
  delete page.berthHeadStart;
  return found;
}

/** `fetch`, which gives the answers to these calls once each. What is not asked for in time ends. */
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
