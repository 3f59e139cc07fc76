import type { Query, QueryClient } from "@tanstack/react-query";
import type { Answer, Client } from "../../contract/client.ts";
import { isSigningOut } from "./session.ts";

const pausesMs = { first: 500, most: 10_000 };
// A busy organization has several changes a second, and each refresh may read a thousand projects. While changes never pause, the pages of
// several windows together stay below the rate limit of their session.
const refresh = { ms: 1000, most: 10, thenMs: 3000 };

// Changes do not refresh these routes. Their pages read them at their own pace, because they are large or need lookups outside of the platform.
const ownPace = [
  "builds.logs",
  "builds.plan",
  "data.rows",
  "data.tables",
  "metrics.get",
  "self-description.capabilities",
];

/**
 * Refreshes what is on the page whenever the organization's stream of changes names it. A hidden page closes its stream, because a browser
 * allows six connections to a host, and continues after the last event once it is visible again.
 */
export function followChanges(client: Client, queries: QueryClient): () => void {
  let gone = new AbortController();
  let after: string | undefined;
  const refreshes = createRefresh(queries);
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
          refreshes.add(page);
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
    refreshes.end();
    document.removeEventListener("visibilitychange", start);
  };
}

/** Batches changes: the first one refreshes at once, those of the next seconds refresh together. */
function createRefresh(queries: QueryClient) {
  let projects = new Set<string | null>();
  let isReset = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let inRow = 0;
  const flush = () => {
    timer = undefined;
    inRow = projects.size === 0 && !isReset ? 0 : inRow + 1;
    if (inRow === 0) return;
    const [named, reset] = [projects, isReset];
    projects = new Set();
    isReset = false;
    timer = setTimeout(flush, inRow <= refresh.most ? refresh.ms : refresh.thenMs);
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
