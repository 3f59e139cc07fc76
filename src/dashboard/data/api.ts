import {
  useMutation,
  useQuery,
  useQueryClient,
  useInfiniteQuery,
  type UseMutationResult,
  type UseQueryResult,
  type InfiniteData,
  type UseInfiniteQueryResult,
} from "@tanstack/react-query";
import { createContext, use } from "react";
import type { z } from "zod";
import { ApiError, type Answer, type AnyInput, type CallInput, type Client } from "../../contract/client.ts";
import type { dryRun } from "../../contract/dry-run.ts";
import { route, type RouteName } from "../../contract/routes.ts";
import { loadPart } from "./load-part.ts";
import { getRouteApi } from "@tanstack/react-router";
import { mayDecide, missingScope, refusal, type Rights } from "../../contract/access.ts";
import type { Row } from "../../contract/table.ts";

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
 * the server has.
 */
export function useAction<N extends RouteName>(name: N): UseMutationResult<Answer<N>, Error, CallInput<N>> {
  const client = useClient();
  const queries = useQueryClient();
  return useMutation({
    mutationKey: [name],
    mutationFn: (input) =>
      call(client, name, input).catch((error: Error) => afterProof(error, () => call(client, name, input))),
    onSuccess: () => queries.invalidateQueries(),
  });
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

export type Me = Answer<"me.get">;

export const MeContext = createContext<Me | null>(null);

export function useMe(): Me {
  const me = use(MeContext);
  if (me === null) throw new Error("A page needs a session.");
  return me;
}

function rightsOf({ role, platform_admin, token }: Me): Rights {
  return { role, platform_admin, scopes: token.scopes as never, project_ids: token.projects };
}

/** Returns why this token may not call a route, in a sentence that names who can change that; undefined if it may. */
export function whyNot(me: Me, name: RouteName): string | undefined {
  const row = route(name);
  const rights = rightsOf(me);
  const refused = refusal(rights, row);
  if (refused === "operator_only") return "Only the platform's operator may do this.";
  if (refused === "owner_only") return "Only an owner of the organization may do this.";
  if (refused === "unlimited_only") return "Your token is limited to projects; this concerns the whole organization.";
  if (refused === "insufficient_scope")
    return `Your token lacks the scope ${missingScope(rights, row)}; an owner can make one that has it.`;
  return undefined;
}

/** Returns why the person who is signed in may not decide a request of this route, and who may; undefined if they may. */
export function whyNotDecide(me: Me, name: string): string | undefined {
  // Undefined for a route that only another version has.
  const row = route(name as RouteName) as Row | undefined;
  const { role, platform_admin, token } = me;
  const rights = { ...rightsOf(me), approval_mode: token.approval_mode };
  if (row !== undefined && mayDecide(rights, row)) return undefined;
  if (token.approval_mode) return "Your token is in approval mode, so an owner with another one decides.";
  if (role !== "owner" && !platform_admin) return "An owner of the organization decides.";
  return "Your token may not do the same itself, so another owner decides.";
}

/** Like `whyNot`, for the signed-in token. */
export function useWhyNot(name: RouteName): string | undefined {
  return whyNot(useMe(), name);
}

/** Says what a push may contain. The process runtime does not build Dockerfiles. */
export function useRecognised(): string {
  const end = useMe().platform.runtime === "process" ? " and static pages" : ", static pages and Dockerfiles";
  return `Node.js, Python, Go, Rust, Java, PHP, Ruby${end} are recognised.`;
}
