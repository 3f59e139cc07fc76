import { randomInt } from "node:crypto";
import type { Role, Scope } from "../../contract/access.ts";
import { scopesOf } from "../../contract/routes.ts";
import { hashOf } from "../tokens/tokens.ts";

/** How long a code in a redirect may be exchanged. */
export const codeMs = 60_000;

/** How long a program waits for the code that a person types. */
export const deviceMs = 10 * 60_000;

/** How often a program that waits may ask. */
export const pollMs = 1000;

export const mostDays = 90;

/**
 * How long a program works that a person connected without a proof to be there: about as long as the session itself. Whoever finds a browser
 * that is signed in could otherwise stay for longer than it does.
 */
export const unprovenDays = 7;

/** The command line. Every other client connects to the tools at `/mcp`. */
export const commandLine = {
  id: "berth-cli",
  name: "Berth's command line",
  redirect_uris: ["http://127.0.0.1/callback"],
};

export interface Client {
  readonly id: string;
  readonly name: string;
  readonly redirect_uris: readonly string[];
}

/** Returns what a program calls itself or its computer, as it may be shown: one short line. */
export function shownName(given: unknown): string {
  if (typeof given !== "string") return "";
  return given
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, "")
    .trim()
    .slice(0, 60);
}

/** Schemes by which editors receive an answer on the person's own computer. */
const editors = ["cursor:", "vscode:", "vscode-insiders:", "windsurf:"];

const isLoopback = ({ protocol, hostname }: URL) =>
  protocol === "http:" && /^(?:127\.0\.0\.1|localhost|\[::1\])$/.test(hostname);

/** Returns whether a program may ask for answers at this address: HTTPS, or on the person's own computer. */
export function isRedirect(given: unknown): given is string {
  const url = typeof given === "string" && given.length <= 500 ? URL.parse(given) : null;
  if (url === null || given !== (given as string).replaceAll(/[^\x21-\x7e]|\\/g, "")) return false;
  if ((given as string).includes("#") || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || isLoopback(url) || editors.includes(url.protocol);
}

/** Returns whether a given address is a registered one: the same text, except for the port on this computer (RFC 8252, section 7.3). */
export function isSameRedirect(registered: string, given: string): boolean {
  if (registered === given) return true;
  const [one, other] = [URL.parse(registered), URL.parse(given)];
  if (one === null || other === null || !isRedirect(given) || !isLoopback(one)) return false;
  one.port = other.port;
  return one.href === other.href;
}

/** Returns who receives an answer: a host, or a program on the person's own computer. */
export function receiverOf(redirect: string): { readonly name: string; readonly isOnThisComputer: boolean } {
  const url = new URL(redirect);
  const isOnThisComputer = url.protocol !== "https:";
  return { name: editors.includes(url.protocol) ? url.protocol.slice(0, -1) : url.host, isOnThisComputer };
}

/** Scopes that make other credentials, or belong to the whole platform: never those of an agent's token. */
const kept: readonly Scope[] = ["tokens:write", "ssh-keys:write", "orgs:read", "orgs:write", "platform:read"];

/** What changes people and makes credentials, for which a person's session proves that the person is there. */
const proven: readonly Scope[] = ["tokens:write", "ssh-keys:write"];

/** Returns which of the person's scopes a program gets. A command line makes no later proofs, so it needs one now for those that do. */
export function scopesFor(
  kind: "cli" | "mcp",
  of: { readonly role: Role; readonly scopes: readonly Scope[]; readonly isProven: boolean },
  readOnly: boolean,
): Scope[] {
  const own =
    kind === "cli"
      ? of.scopes.filter((scope) => of.isProven || !proven.includes(scope))
      : of.scopes.filter((scope) => scopesOf(of.role).includes(scope) && !kept.includes(scope));
  return own.filter((scope) => !readOnly || scope.endsWith(":read"));
}

// Without vowels and letters that look alike: 20^8 codes, and no words.
const letters = "BCDFGHJKLMNPQRSTVWXZ";

export function newUserCode(): string {
  const code = Array.from({ length: 8 }, () => letters[randomInt(letters.length)]).join("");
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}

/** Returns the stored hash of a code that a person typed, however they separated it. */
export function userCodeHash(typed: string): Buffer {
  return hashOf(typed.toUpperCase().replaceAll(/[^A-Z]/g, ""));
}
