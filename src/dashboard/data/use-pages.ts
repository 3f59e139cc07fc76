import { useInfiniteQuery, type InfiniteData, type UseInfiniteQueryResult } from "@tanstack/react-query";
import type { Answer, CallInput } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { call, useClient } from "./api.ts";

/** The routes whose responses come in pages: the next one is named by a cursor or an offset. */
type PagedName = {
  [N in RouteName]: Answer<N> extends { readonly next_cursor: string | null } | { readonly next_offset: number | null }
    ? N
    : never;
}[RouteName];

interface Page {
  readonly next_cursor?: string | null;
  readonly next_offset?: number | null;
}

/** Reads a list in pages: the newest one, and older ones on demand. Cached and refreshed like `useCall`. */
export function usePages<N extends PagedName>(
  name: N,
  input: CallInput<N>,
  pollMs: (pages: readonly Answer<N>[]) => number | false = () => false,
): UseInfiniteQueryResult<InfiniteData<Answer<N>>> {
  const client = useClient();
  return useInfiniteQuery<Answer<N>, Error, InfiniteData<Answer<N>>, readonly unknown[], string | number | undefined>({
    queryKey: [name, input, "pages"],
    queryFn: ({ pageParam, signal }) => {
      const next = typeof pageParam === "number" ? { offset: pageParam } : { cursor: pageParam };
      const query = { ...(input as { readonly query?: object }).query, ...next };
      return call(client, name, { ...input, query, signal } as CallInput<N>);
    },
    refetchInterval: ({ state }) => pollMs(state.data?.pages ?? []),
    initialPageParam: undefined,
    getNextPageParam: (page) => (page as Page).next_cursor ?? (page as Page).next_offset ?? undefined,
  });
}
