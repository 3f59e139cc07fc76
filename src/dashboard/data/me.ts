import { createContext, use } from "react";
import { mayDecide, missingScope, refusal, type Rights } from "../../contract/access.ts";
import type { Answer } from "../../contract/client.ts";
import { route, type RouteName } from "../../contract/routes.ts";
import type { Row } from "../../contract/table.ts";

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
