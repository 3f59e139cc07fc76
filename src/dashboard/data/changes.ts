import type { Query, QueryClient } from "@tanstack/react-query";
import type { Answer, Client } from "../../contract/client.ts";

const pausesMs = { first: 500, most: 10_000 };

// Read where they are shown, at their own pace: large, or looked up in the world.
const ownPace = ["builds.logs", "data.rows", "data.tables", "metrics.get", "self-description.capabilities"];

/**
 * Reads again what is shown whenever the organization's stream of changes names it. A hidden page has no stream, because a browser allows six
 * connections to a host; it goes on behind the last event when it is seen again.
 */
export function followChanges(client: Client, queries: QueryClient): () => void {
  let gone = new AbortController();
  let after: string | undefined;
  const start = () => {
    gone.abort();
    gone = new AbortController();
    if (document.visibilityState === "visible") void follow(gone.signal);
  };
  const follow = async (signal: AbortSignal) => {
    let pauseMs = pausesMs.first;
    while (!signal.aborted) {
      try {
        for await (const page of client.follow("activity.changes", { query: { after }, signal })) {
          pauseMs = pausesMs.first;
          after = page.next_cursor;
          refresh(queries, page);
        }
      } catch {
        // What is lost for good (the token, the organization) shows in the next call of a page.
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      pauseMs = Math.min(pauseMs * 2, pausesMs.most);
    }
  };
  document.addEventListener("visibilitychange", start);
  start();
  return () => {
    gone.abort();
    document.removeEventListener("visibilitychange", start);
  };
}

function refresh(queries: QueryClient, { changes, reset }: Answer<"activity.changes">): void {
  const projects = new Set(changes.map(({ project }) => project));
  const isNamed = ({ queryKey: [name, input] }: Query) => {
    if (ownPace.includes(String(name))) return false;
    const { params } = (input ?? {}) as { readonly params?: { readonly slug?: string } };
    return reset || params?.slug === undefined || projects.has(params.slug);
  };
  if (reset || changes.length > 0) void queries.invalidateQueries({ predicate: isNamed });
}
