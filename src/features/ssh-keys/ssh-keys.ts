import type { Scope } from "../../contract/access.ts";
import type { Db } from "../../store/database.ts";
import { selectKeysByFingerprint } from "./queries.ts";

export { selectKey as findKey } from "./queries.ts";

export interface KeyOwner {
  readonly id: string;
  readonly name: string;
  readonly org_id: string;
  readonly org_slug: string;
  /** `type base64`, without a comment. */
  readonly public_key: string;
  readonly suspended: boolean;
  /** The scopes of the token that registered it. */
  readonly scopes: readonly Scope[];
  /** The projects to which that token is limited; null: all. */
  readonly project_ids: readonly string[] | null;
  readonly approval_mode: boolean;
  readonly token_id: string | null;
}

/** Returns who registered the key with this fingerprint, one entry per organization, without revoked or expired tokens'. */
export async function keysByFingerprint(db: Db, fingerprint: string): Promise<readonly KeyOwner[]> {
  const rows = await selectKeysByFingerprint(db, fingerprint);
  return rows.map(({ suspended_at, scopes, approval_mode, ...row }) => ({
    ...row,
    approval_mode: approval_mode ?? true,
    suspended: suspended_at !== null,
    scopes: (scopes ?? []) as Scope[],
  }));
}
