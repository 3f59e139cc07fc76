import { sql } from "kysely";
import type { Columns, Db, Tx } from "../../store/database.ts";

export interface NewLink extends Columns<"sign_in_link", "hash" | "token_hash" | "locked_token"> {
  readonly expires_at: Date;
}

/** Inserts a link; deletes those that have expired, and the token's oldest ones beyond `most`. */
export async function insertLink(tx: Tx, link: NewLink, most: number): Promise<void> {
  // Concurrent insertions wait, so that each sees the others' links.
  await sql`lock table sign_in_link in share row exclusive mode`.execute(tx);
  await tx.insertInto("sign_in_link").values(link).execute();
  await sql`delete from sign_in_link where expires_at < now() or hash in (select hash from sign_in_link
    where token_hash = ${link.token_hash} order by expires_at desc offset ${most})`.execute(tx);
}

const live = sql<boolean>`expires_at > now()`;

export async function selectLink(db: Db, hash: Buffer): Promise<Buffer | undefined> {
  const found = await db
    .selectFrom("sign_in_link")
    .select("locked_token")
    .where("hash", "=", hash)
    .where(live)
    .executeTakeFirst();
  return found?.locked_token;
}

export async function deleteLink(db: Db, hash: Buffer): Promise<Buffer | undefined> {
  const found = await db
    .deleteFrom("sign_in_link")
    .where("hash", "=", hash)
    .where(live)
    .returning("locked_token")
    .executeTakeFirst();
  return found?.locked_token;
}
