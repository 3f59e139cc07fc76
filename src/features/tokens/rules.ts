import { createHash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import type { Rights, Role, Scope } from "../../contract/access.ts";
import { scopesOf } from "../../contract/routes.ts";

const base62Alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const secretCharacters = 43;
const checkCharacters = 6;
const pattern = /^berth_[omast]_[0-9A-Za-z]{49}$/;

/** `o`wner, `m`ember, `a`dmin, a person's `s`ession, or the `t`ools of an agent, at `/mcp` alone. Part of the token's text, so that a leaked token shows what it can do. */
export type TokenKind = "o" | "m" | "a" | "s" | "t";

/** Creates a token's text: 256 random bits, and a checksum by which secret scanners recognise it. */
export function newTokenText(kind: TokenKind): string {
  const secret = base62(BigInt(`0x${randomBytes(32).toString("hex")}`), secretCharacters);
  const body = `berth_${kind}_${secret}`;
  return body + checksum(body);
}

/** Returns whether a text has a token's form and checksum; the token may not exist. */
export function isTokenText(text: string): boolean {
  return pattern.test(text) && checksum(text.slice(0, -checkCharacters)) === text.slice(-checkCharacters);
}

/** Returns whether a token's text is of a person's session. */
export function isSessionText(text: string): boolean {
  return text.startsWith("berth_s_");
}

/** Returns whether a token's text is of an agent that a person connected to `/mcp`, and works nowhere else. */
export function isToolsText(text: string): boolean {
  return text.startsWith("berth_t_");
}

/** Returns the hash that is stored of a token. The text has 256 random bits, so a plain hash cannot be reversed. */
export function hashOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Returns the eight characters that lists show of a token. */
export function prefixOf(text: string): string {
  return text.slice("berth_o_".length, "berth_o_".length + 8);
}

export interface WantedRights {
  readonly role: Role;
  readonly scopes?: readonly Scope[] | undefined;
  readonly approval_mode?: boolean | undefined;
}

/** Returns the rights of a token that the creator may issue, or why not. */
export function rightsWithin(
  creator: Rights & { readonly approval_mode: boolean },
  wanted: WantedRights,
): GrantedRights | { readonly refused: string } {
  if (wanted.role === "owner" && !isOwner(creator)) return { refused: "A member cannot create an owner token." };
  const scopes = wanted.scopes ?? creator.scopes.filter((scope) => scopesOf(wanted.role).includes(scope));
  const missing = scopes.find((scope) => !creator.scopes.includes(scope));
  if (missing) return { refused: `Your own token lacks the scope ${missing}.` };
  return {
    role: wanted.role,
    scopes: [...new Set(scopes)],
    approval_mode: creator.approval_mode || wanted.approval_mode === true,
  };
}

/** Returns when a new token expires: a member's cannot create one that outlives it; an owner's can, or nobody could renew. */
export function expiryWithin(
  creator: Pick<Rights, "role" | "platform_admin"> & { readonly expires_at: string | null },
  wanted: Date,
): Date {
  if (isOwner(creator) || creator.expires_at === null) return wanted;
  return new Date(Math.min(wanted.getTime(), Date.parse(creator.expires_at)));
}

export interface GrantedRights {
  readonly role: Role;
  readonly scopes: readonly Scope[];
  readonly approval_mode: boolean;
}

/** Returns whether the caller may revoke what others made: members revoke only their own. */
export function mayRevokeOthers(caller: Rights): boolean {
  return isOwner(caller);
}

/** Returns whether the caller may revoke a token; it must not have more rights than the caller. */
export function mayRevoke(caller: Rights, target: Pick<Rights, "role" | "platform_admin">): boolean {
  if (target.platform_admin) return caller.platform_admin;
  return target.role === "member" || isOwner(caller);
}

function isOwner(rights: Pick<Rights, "role" | "platform_admin">): boolean {
  return rights.role === "owner" || rights.platform_admin;
}

function checksum(text: string): string {
  return base62(BigInt(crc32(text)), checkCharacters);
}

function base62(number: bigint, length: number): string {
  let text = "";
  for (let rest = number; text.length < length; rest /= 62n) text = base62Alphabet.charAt(Number(rest % 62n)) + text;
  return text;
}
