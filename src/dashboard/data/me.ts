import { createContext, use } from "react";
import { missingScope, refusal } from "../../contract/access.ts";
import type { Answer } from "../../contract/client.ts";
import { route, type RouteName } from "../../contract/routes.ts";

export type Me = Answer<"me.get">;

export const MeContext = createContext<Me | null>(null);

/** Returns the signed-in token with its organization and rights. */
export function useMe(): Me {
  const me = use(MeContext);
  if (me === null) throw new Error("A page needs a session.");
  return me;
}

/** Returns why this token may not call a route, in a sentence that names who can change that; undefined if it may. */
export function whyNot(me: Me, name: RouteName): string | undefined {
  const row = route(name);
  const rights = { role: me.role, platform_admin: me.platform_admin, scopes: me.token.scopes as never };
  const refused = refusal(rights, row);
  if (refused === "operator_only") return "Only the platform's operator may do this.";
  if (refused === "owner_only") return "Only an owner of the organization may do this.";
  if (refused === "insufficient_scope")
    return `Your token lacks the scope ${missingScope(rights, row)}; an owner can make one that has it.`;
  return undefined;
}

/** Like `whyNot`, for the signed-in token. */
export function useWhyNot(name: RouteName): string | undefined {
  return whyNot(useMe(), name);
}
