import {
  useMutation,
  useQuery,
  useQueryClient,
  type UseMutationResult,
  type UseQueryResult,
} from "@tanstack/react-query";
import { createContext, use, useCallback, useRef } from "react";
import type { z } from "zod";
import { ApiError, type Answer, type AnyInput, type CallInput, type Client } from "../../contract/client.ts";
import type { dryRun } from "../../contract/dry-run.ts";
import { route, type RouteName } from "../../contract/routes.ts";
import { loadPart } from "./load-part.ts";
import { getRouteApi } from "@tanstack/react-router";

export const ClientContext = createContext<Client | null>(null);

export function useClient(): Client {
  const client = use(ClientContext);
  if (client === null) throw new Error("A page needs a session.");
  return client;
}

/** How often to read again, in ms, for data whose changes are not in the stream of changes; false: never. */
export type PollMs<A> = number | ((answer: A | undefined) => number | false);

interface CallOptions<A> {
  readonly enabled?: boolean;
  readonly pollMs?: PollMs<A>;
  readonly keep?: boolean;
}

/** Calls a route that reads. The result is cached, and refreshed by events of the organization too. */
export function useCall<N extends RouteName>(
  name: N,
  input: CallInput<N>,
  { enabled = true, pollMs = () => false, keep = false }: CallOptions<Answer<N>> = {},
): UseQueryResult<Answer<N>> {
  const client = useClient();
  return useQuery<Answer<N>>({
    queryKey: [name, input],
    queryFn: ({ signal }) => call(client, name, { ...input, signal }),
    enabled,
    refetchInterval: typeof pollMs === "number" ? pollMs : ({ state }) => pollMs(state.data),
    ...(keep ? { placeholderData: (before: unknown) => before as never } : {}),
  });
}

/**
 * Calls a route that changes something, then refreshes everything on the page. There are no optimistic updates: the page changes only after
 * the server has. A call that is under way is not made a second time: a fast second click comes before the button shows that it is busy.
 */
export function useAction<N extends RouteName>(name: N): UseMutationResult<Answer<N>, Error, CallInput<N>> {
  const client = useClient();
  const queries = useQueryClient();
  const underWay = useRef(new Set<string>());
  const action = useMutation<Answer<N>, Error, CallInput<N>>({
    mutationFn: (input) =>
      call(client, name, input).catch((error: Error) => afterProof(error, () => call(client, name, input))),
    onSuccess: () => queries.invalidateQueries(),
    onSettled: (_answer, _error, input) => void underWay.current.delete(JSON.stringify(input)),
  });
  const { mutate: start } = action;
  const mutate: typeof start = useCallback(
    (...args) => {
      const key = JSON.stringify(args[0]);
      if (underWay.current.has(key)) return;
      underWay.current.add(key);
      start(...args);
    },
    [start],
  );
  return { ...action, mutate };
}

/** Asks for the passkey if that is what was missing, and then calls again; what the user typed stays. */
async function afterProof<T>(error: Error, again: () => Promise<T>): Promise<T> {
  if (!(error instanceof ApiError) || error.code !== "fresh_sign_in_required") throw error;
  const { provePresence } = await loadPart(() => import("./sign-in.ts"));
  await provePresence().catch(() => Promise.reject(error));
  return again();
}

/** The response of a change's dry run: what the change would do. */
export type DryRun = z.output<typeof dryRun>;

export function useDryRun(name: RouteName, { params, query = {} }: AnyInput): UseQueryResult<DryRun> {
  const client = useClient();
  return useQuery({
    queryKey: [name, params, query, "dry_run"],
    queryFn: () =>
      client.send(route(name), { ...(params && { params }), query: { ...query, dry_run: true } }) as Promise<DryRun>,
    // Requested once, when the dialog opens: after the change, the same dry run would be refused.
    staleTime: "static",
    gcTime: 0,
  });
}

/** Calls a route whose name is a type parameter, which the typed client's conditional types can't follow. */
export function call<N extends RouteName>(client: Client, name: N, input: CallInput<N>): Promise<Answer<N>> {
  const untyped = client.call as (name: RouteName, input: AnyInput) => Promise<unknown>;
  return untyped(name, input as AnyInput) as Promise<Answer<N>>;
}

const projectRoute = getRouteApi("/projects/$slug");

export type Project = Answer<"projects.get">;

export function useProject() {
  const slug = useSlug();
  return useCall("projects.get", { params: { slug } });
}

export function useSlug(): string {
  return projectRoute.useParams().slug;
}
