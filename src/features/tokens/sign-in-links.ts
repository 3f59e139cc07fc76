import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import type { Db, Columns, Tx } from "../../store/database.ts";
import { hashOf } from "./rules.ts";
import { sql } from "kysely";

const linkMs = 15 * 60_000;
// A limit per token, so that one token's links do not displace those of others; its oldest link goes first.
const mostLinksOfToken = 5;

/** Creates a code that signs in with this token, once and within 15 minutes, at every control plane. */
export async function createSignInLink(db: Db, token: string): Promise<string> {
  const code = randomBytes(32).toString("base64url");
  const link = { hash: hashOf(code), token_hash: hashOf(token), locked_token: lock(code, token) };
  const expires_at = new Date(Date.now() + linkMs);
  await db.transaction().execute((tx) => insertLink(tx, { ...link, expires_at }, mostLinksOfToken));
  return code;
}

/** Returns the token behind a code, which stays valid. */
export async function peekSignInLink(db: Db, code: string): Promise<string | undefined> {
  const locked = await selectLink(db, hashOf(code));
  return locked && unlock(code, locked);
}

/** Returns the token behind a code and invalidates the code. */
export async function redeemSignInLink(db: Db, code: string): Promise<string | undefined> {
  const locked = await deleteLink(db, hashOf(code));
  return locked && unlock(code, locked);
}

// Not sealed by the vault: only the code, of which a hash is stored, opens the token. Each key encrypts one text, so it needs no nonce.
const keyOf = (code: string) => createHash("sha256").update(`sign-in link ${code}`).digest();
const nonce = Buffer.alloc(12);
const tagBytes = 16;

function lock(code: string, token: string): Buffer {
  const cipher = createCipheriv("aes-256-gcm", keyOf(code), nonce);
  return Buffer.concat([cipher.update(token), cipher.final(), cipher.getAuthTag()]);
}

function unlock(code: string, locked: Buffer): string {
  const opening = createDecipheriv("aes-256-gcm", keyOf(code), nonce, { authTagLength: tagBytes });
  opening.setAuthTag(locked.subarray(-tagBytes));
  return Buffer.concat([opening.update(locked.subarray(0, -tagBytes)), opening.final()]).toString();
}

interface NewLink extends Columns<"sign_in_link", "hash" | "token_hash" | "locked_token"> {
  readonly expires_at: Date;
}

/** Inserts a link; deletes those that have expired, and the token's oldest ones beyond `most`. */
async function insertLink(tx: Tx, link: NewLink, most: number): Promise<void> {
  // Concurrent insertions wait, so that each sees the others' links.
  await sql`lock table sign_in_link in share row exclusive mode`.execute(tx);
  await tx.insertInto("sign_in_link").values(link).execute();
  await sql`delete from sign_in_link where expires_at < now() or hash in (select hash from sign_in_link
    where token_hash = ${link.token_hash} order by expires_at desc offset ${most})`.execute(tx);
}

const live = sql<boolean>`expires_at > now()`;

async function selectLink(db: Db, hash: Buffer): Promise<Buffer | undefined> {
  const found = await db
    .selectFrom("sign_in_link")
    .select("locked_token")
    .where("hash", "=", hash)
    .where(live)
    .executeTakeFirst();
  return found?.locked_token;
}

async function deleteLink(db: Db, hash: Buffer): Promise<Buffer | undefined> {
  const found = await db
    .deleteFrom("sign_in_link")
    .where("hash", "=", hash)
    .where(live)
    .returning("locked_token")
    .executeTakeFirst();
  return found?.locked_token;
}
