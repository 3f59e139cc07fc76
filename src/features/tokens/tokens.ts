import { knownScopes, scopes } from "../../contract/access.ts";
import { newId } from "../../kit/ids.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Caller } from "../context.ts";
import {
  insertFirstOrganization,
  insertToken,
  selectToken,
  selectTokenByHash,
  touchToken,
  widenAdministrators,
  type NewToken,
} from "./queries.ts";
import { hashOf, isTokenText, newTokenText, prefixOf } from "./rules.ts";

export { mayRevoke } from "./rules.ts";

// The first organization belongs to the machine's operator, who should never reach the limit of other organizations.
const firstOrganizationProjects = 1000;

export interface Authenticated {
  readonly caller: Caller;
  readonly suspended: boolean;
  /** RFC 3339; null when it never expires. */
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

/** Returns the live token with this text, or undefined. Malformed texts cost no query. */
export async function authenticate(db: Db, text: string): Promise<Authenticated | undefined> {
  if (!isTokenText(text)) return undefined;
  const row = await selectTokenByHash(db, hashOf(text));
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
export async function findToken(db: Db | Tx, caller: Pick<Caller, "org_id">, id: string) {
  const row = await selectToken(db, caller.org_id, id);
  return row && { ...row, scopes: knownScopes(row.scopes) };
}

export type WantedToken = Omit<NewToken, "id" | "hash" | "prefix" | "platform_admin">;

/** Creates a token; only the result contains its text. */
export async function issueToken(tx: Tx, wanted: WantedToken) {
  const text = newTokenText(wanted.role === "owner" ? "o" : "m");
  const id = newId("tok", wanted.created_at.getTime());
  const made = { ...wanted, id, platform_admin: false, prefix: prefixOf(text), hash: hashOf(text) };
  return { ...(await insertToken(tx, made)), token: text };
}

/** Records that a token was used; writes at most once a minute. */
export async function recordUse(db: Db, tokenId: string): Promise<void> {
  await touchToken(db, tokenId);
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
      !(await insertFirstOrganization(tx, {
        id: org_id,
        slug: "main",
        name: "Main",
        max_projects: firstOrganizationProjects,
        is_first: true,
      }))
    ) {
      // A newer version may have scopes that did not exist when the first administrator's token was created.
      await widenAdministrators(tx, scopes);
      return false;
    }
    const text = newTokenText("a");
    await insertToken(tx, {
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
