import { useInfiniteQuery } from "@tanstack/react-query";
import type { Answer, CallInput } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { call, useClient } from "./api.ts";

/** The routes whose responses come in pages. */
type PagedName = { [N in RouteName]: Answer<N> extends { readonly next_cursor: string | null } ? N : never }[RouteName];

/** Reads a list in pages: the newest one, and older ones on demand. Cached and refreshed like `useCall`. */
export function usePages<N extends PagedName>(name: N, input: CallInput<N>, refetchInterval: number | false = false) {
  const client = useClient();
  return useInfiniteQuery({
    queryKey: [name, input, "pages"],
    queryFn: ({ pageParam: cursor, signal }) => {
      const query = { ...(input as { readonly query?: object }).query, cursor };
      return call(client, name, { ...input, query, signal } as CallInput<N>);
    },
    refetchInterval,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => (page as { readonly next_cursor: string | null }).next_cursor ?? undefined,
  });
}
