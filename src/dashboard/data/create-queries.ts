import { MutationCache, QueryCache, QueryClient, type Query } from "@tanstack/react-query";
import { ApiError } from "../../contract/client.ts";

const pauseSeconds = 10;

/** Makes the cache of what the pages read. Calls `onStop` once nothing can be read any more. */
export function createQueries(onStop: (reason: "expired" | "suspended") => void): QueryClient {
  const onError = (error: Error) => {
    if (!(error instanceof ApiError)) return;
    if (error.code === "unauthorized") onStop("expired");
    if (error.code === "org_suspended") onStop("suspended");
  };
  // What could not be read stays outdated until the next change, which may never come: it is read again once that may succeed.
  const waiting = new Set<string>();
  const readLater = (error: Error, { queryHash, queryKey }: Query<unknown, unknown, unknown>) => {
    const isLimited = error instanceof ApiError && error.code === "rate_limited";
    if ((isRefusal(error) && !isLimited) || waiting.has(queryHash)) return;
    waiting.add(queryHash);
    const seconds = (error instanceof ApiError && error.retryAfterSeconds) || pauseSeconds;
    setTimeout(() => {
      waiting.delete(queryHash);
      void queries.invalidateQueries({ queryKey, exact: true });
    }, seconds * 1000);
  };
  const queries = new QueryClient({
    queryCache: new QueryCache({
      onError(error, query) {
        onError(error);
        readLater(error, query);
      },
    }),
    mutationCache: new MutationCache({ onError }),
    // By default a call made offline waits silently. With these options it fails as it does when the platform is down.
    defaultOptions: {
      queries: {
        retry: (count, error) => !isRefusal(error) && count < 2,
        staleTime: 10_000,
        refetchOnWindowFocus: true,
        networkMode: "always",
      },
      mutations: { networkMode: "always" },
    },
  });
  return queries;
}

/** Returns whether trying again at once would fail as well: not after server errors and lost connections. */
function isRefusal(error: Error): boolean {
  return error instanceof ApiError && error.status < 500;
}
