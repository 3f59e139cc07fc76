import type { Db } from "../../store/database.ts";
import { selectKeysByFingerprint } from "./queries.ts";

/** One organization's registration of a key. */
export interface KeyOwner {
  readonly id: string;
  readonly name: string;
  readonly org_id: string;
  readonly org_slug: string;
  /** `type base64`, without a comment. */
  readonly public_key: string;
  readonly suspended: boolean;
}

/** Who registered the key of this fingerprint (`SHA256:…`, as OpenSSH prints it): one entry an organization, usually one or none. */
export async function keysByFingerprint(db: Db, fingerprint: string): Promise<readonly KeyOwner[]> {
  const rows = await selectKeysByFingerprint(db, fingerprint);
  return rows.map(({ suspended_at, ...row }) => ({ ...row, suspended: suspended_at !== null }));
}
