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

// Who runs the machine never meets the limit that other organizations have.
const firstOrganizationProjects = 1000;

/** A live token and whom it stands for. */
export interface Authenticated {
  readonly caller: Caller;
  readonly suspended: boolean;
  /** RFC 3339; null when it never expires. */
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
}

/** The live token of this text, or undefined when there is none. Texts without the right form cost no query. */
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

/** A token of the caller's organization that is not revoked, as the API shows it; undefined when there is none. */
export async function findToken(db: Db | Tx, caller: Pick<Caller, "org_id">, id: string) {
  const row = await selectToken(db, caller.org_id, id);
  return row && { ...row, scopes: knownScopes(row.scopes) };
}

export type WantedToken = Omit<NewToken, "id" | "hash" | "prefix" | "platform_admin">;

/** Makes a token; the answer is the only place where its text ever is. */
export async function issueToken(tx: Tx, wanted: WantedToken) {
  const text = newTokenText(wanted.role === "owner" ? "o" : "m");
  const id = newId("tok", wanted.created_at.getTime());
  const made = { ...wanted, id, platform_admin: false, prefix: prefixOf(text), hash: hashOf(text) };
  return { ...(await insertToken(tx, made)), token: text };
}

/** Writes down that a token was used; at most once a minute is anything written. */
export async function recordUse(db: Db, tokenId: string): Promise<void> {
  await touchToken(db, tokenId);
}

/**
 * Makes the organization `main` and a platform-admin token in it, unless there is an organization already: then false, and the
 * administrator of the first start gets the scopes that were not known then.
 * `keep` stores the token's text where its owner finds it; the organization exists only if that succeeded.
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
      // A newer version has scopes that the first administrator's token could not be given yet.
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
