import type { Query, QueryClient } from "@tanstack/react-query";
import type { Answer, Client } from "../../contract/client.ts";
import { isSigningOut } from "./session.ts";

const pausesMs = { first: 500, most: 10_000 };
// A busy organization has several changes a second, and each refresh may read a thousand projects.
const refreshMs = 1000;

// Changes do not refresh these routes. Their pages read them at their own pace, because they are large or need lookups outside of the
// platform.
const ownPace = ["builds.logs", "data.rows", "data.tables", "metrics.get", "self-description.capabilities"];

/**
 * Refreshes what is on the page whenever the organization's stream of changes names it. A hidden page closes its stream, because a browser
 * allows six connections to a host, and continues after the last event once it is visible again.
 */
export function followChanges(client: Client, queries: QueryClient): () => void {
  let gone = new AbortController();
  let after: string | undefined;
  const refresh = createRefresh(queries);
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
          refresh.add(page);
        }
      } catch {
        // This call finds out whether the platform is unreachable, or the token or the organization is lost for good.
        if (!signal.aborted && !isSigningOut()) void queries.invalidateQueries({ queryKey: ["me.get"] });
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      pauseMs = Math.min(pauseMs * 2, pausesMs.most);
    }
  };
  document.addEventListener("visibilitychange", start);
  start();
  return () => {
    gone.abort();
    refresh.end();
    document.removeEventListener("visibilitychange", start);
  };
}

/** Batches changes: the first one refreshes at once, those of the next second refresh together. */
function createRefresh(queries: QueryClient) {
  let projects = new Set<string | null>();
  let isReset = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    if (projects.size === 0 && !isReset) return;
    const [named, reset] = [projects, isReset];
    projects = new Set();
    isReset = false;
    timer = setTimeout(flush, refreshMs);
    void queries.invalidateQueries({ predicate: (query) => isOf(query, named, reset) });
  };
  return {
    add({ changes, reset }: Answer<"activity.changes">) {
      for (const { project } of changes) projects.add(project);
      isReset ||= reset;
      if (timer === undefined) flush();
    },
    end: () => clearTimeout(timer),
  };
}

function isOf({ queryKey: [name, input] }: Query, projects: ReadonlySet<string | null>, isReset: boolean): boolean {
  if (ownPace.includes(String(name))) return false;
  const { params } = (input ?? {}) as { readonly params?: { readonly slug?: string } };
  return isReset || params?.slug === undefined || projects.has(params.slug);
}
