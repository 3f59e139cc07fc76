import { randomBytes } from "node:crypto";
import { hasLost, knownScopes, roles, scopes, type Role } from "../../contract/access.ts";
import { scopesOf } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Caller, Context, RefusalText } from "../context.ts";
import { Refused } from "../refused.ts";
import { findProject } from "../projects/projects.ts";
import * as queries from "./queries.ts";
import { hashOf, isSessionText, isTokenText, isToolsText, newTokenText, prefixOf } from "./rules.ts";

export { isInUse, lockKeepsOwner, ownTokenIds, reachedProjects } from "./queries.ts";
export { createSignInLink, peekSignInLink, redeemSignInLink } from "./sign-in-links.ts";
export * from "./rules.ts";

// The first organization belongs to the machine's operator, who should never reach the limit of other organizations.
const firstOrganizationProjects = 1000;

export interface Authenticated {
  readonly caller: Caller;
  readonly suspended: boolean;
  /** RFC 3339; null when it never expires. */
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

/** Returns the live token with this text, or undefined. One that works at `/mcp` alone counts as none, unless `door` is `tools`. */
export async function authenticate(
  db: Db,
  text: string,
  door: "api" | "tools" = "api",
): Promise<Authenticated | undefined> {
  if (!isTokenText(text) || (isToolsText(text) && door !== "tools")) return undefined;
  const row = await (isSessionText(text) ? queries.selectSessionByHash : queries.selectTokenByHash)(db, hashOf(text));
  if (row === undefined) return undefined;
  const { suspended_at, expires_at, last_used_at, ...caller } = row;
  return {
    caller: { ...caller, scopes: knownScopes(caller.scopes) },
    suspended: suspended_at !== null,
    expires_at,
    last_used_at,
  };
}

/** Returns a token of the caller's organization, in the API's form; undefined when there is none or it is revoked. */
export async function findToken(db: Db | Tx, orgId: string, id: string) {
  const row = await queries.selectToken(db, orgId, id);
  return row && { ...row, scopes: knownScopes(row.scopes) };
}

export type WantedToken = Omit<queries.NewToken, "id" | "hash" | "prefix" | "platform_admin">;

/** Returns the caller of a token, or a membership, as it is now; undefined when it has ended. */
export async function callerNow(
  db: Db | Tx,
  tokenId: string,
): Promise<(Caller & { expires_at: string | null }) | undefined> {
  const row = await queries.selectCaller(db, tokenId);
  return row && { ...row, scopes: knownScopes(row.scopes) };
}

/** Refuses a caller who has lost rights since the request was admitted. Only under the organization's lock, under which they change. */
export async function requireRightsNow({ tx, caller }: { readonly tx: Tx; readonly caller: Caller }): Promise<void> {
  const now = await callerNow(tx, caller.token_id);
  if (now === undefined) throw new Refused("unauthorized");
  if (hasLost(caller, now)) throw new Refused("unavailable", { error: "Your rights have changed. Try again." });
}

/** Inserts a token that nobody has the text of yet, and returns its id. */
export async function insertPending(tx: Tx, wanted: Omit<queries.NewToken, "id" | "hash" | "prefix">): Promise<string> {
  const id = newId("tok", wanted.created_at.getTime());
  await queries.insertToken(tx, { ...wanted, id, prefix: "", hash: randomBytes(32) });
  return id;
}

/** Makes the text of a program's token, and what is stored of it. */
export function textOf(program: { readonly kind: string; readonly role: Role; readonly platform_admin: boolean }) {
  const owner = program.platform_admin ? "a" : program.role === "owner" ? "o" : "m";
  const text = newTokenText(program.kind === "mcp" ? "t" : owner);
  return { text, hash: hashOf(text), prefix: prefixOf(text) };
}

/** Creates a token; only the result contains its text. */
export async function issueToken(tx: Tx, wanted: WantedToken) {
  const text = newTokenText(wanted.role === "owner" ? "o" : "m");
  const id = newId("tok", wanted.created_at.getTime());
  const made = { ...wanted, id, platform_admin: false, prefix: prefixOf(text), hash: hashOf(text) };
  return { ...(await queries.insertToken(tx, made)), token: text };
}

/** Returns the ids of the projects to which somebody is limited; those outside the caller's own limits count as missing. */
export async function projectIdsOf(ctx: Limiting, slugs: readonly string[]): Promise<string[]> {
  const ids = new Set<string>();
  for (const slug of slugs) {
    const project = await findProject(ctx.tx, ctx.caller.org_id, slug);
    if (project === undefined || ctx.caller.project_ids?.includes(project.id) === false) {
      const error = `There is no project "${slug}" in the organization, or your token does not reach it.`;
      return ctx.fail("invalid_request", { error, details: [{ path: "projects", message: error }] });
    }
    ids.add(project.id);
  }
  return [...ids];
}

type Limiting = Pick<Context<"tokens.create">, "tx" | "caller"> & {
  readonly fail: (code: "invalid_request", more: RefusalText) => never;
};

/** Records that a token was used; writes at most once a minute. */
export async function recordUse(db: Db, tokenId: string): Promise<void> {
  await queries.touchToken(db, tokenId);
}

/**
 * Creates the organization `main` with a platform-admin token and returns true. If any organization exists, only adds new scopes to the
 * first administrator's token and returns false. `keep` stores the token's text for its owner; if it fails, the organization is not
 * created.
 */
export async function createFirstOrganization(db: Db, keep: (tokenText: string) => Promise<void>): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    const org_id = newId("org");
    if (
      !(await queries.insertFirstOrganization(tx, {
        id: org_id,
        slug: "main",
        name: "Main",
        max_projects: firstOrganizationProjects,
        is_first: true,
      }))
    ) {
      // A newer version may have scopes that did not exist when the first administrator's token was created.
      await queries.widenAdministrators(tx, scopes);
      for (const role of roles) await queries.widenMembers(tx, role, scopesOf(role));
      return false;
    }
    const text = newTokenText("a");
    await queries.insertToken(tx, {
      id: newId("tok"),
      org_id,
      name: "First administrator",
      role: "owner",
      platform_admin: true,
      scopes,
      approval_mode: false,
      project_ids: null,
      prefix: prefixOf(text),
      hash: hashOf(text),
      created_by: null,
      created_at: new Date(),
      expires_at: null,
    });
    await keep(text);
    return true;
  });
}
