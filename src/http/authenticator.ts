import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Log } from "../kit/log.ts";
import type { Wakeups } from "../store/wakeups.ts";
import type { Authenticated } from "../features/tokens/tokens.ts";

/** Finds the caller that a token stands for, mostly from memory. Revoked, expired and suspended tokens stop working within a second. */
export interface Authenticator {
  /** The live token, or undefined. */
  authenticate(text: string): Promise<Authenticated | undefined>;
  /** Forgets every token that is remembered here; answers of look-ups that are under way are not remembered. */
  forget(): void;
  close(): void;
}

export interface AuthenticatorOptions {
  readonly wakeups: Wakeups;
  readonly log: Log;
  readonly find: (text: string) => Promise<Authenticated | undefined>;
  readonly recordUse: (tokenId: string) => Promise<void>;
  /** Milliseconds since 1970; left out, this machine's. */
  readonly now?: () => number;
}

interface Remembered {
  readonly found: Authenticated;
  readonly fetchedAtMs: number;
  readonly expiresAtMs: number;
  usedAtMs: number;
}

const mostTokens = 10_000;
// With wake-ups a change empties the memory at once; without them an entry must not outlive the promised second.
const maxAgeMs = { listening: 60_000, deaf: 1000 };
const useEveryMs = 60_000;

/** Remembers tokens by their SHA-256. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const memory = new LRUCache<string, Remembered>({ max: mostTokens });
  const now = options.now ?? Date.now;
  let generation = 0;
  const forget = () => {
    generation += 1;
    memory.clear();
  };
  const stop = options.wakeups.on("tokens", forget);
  const look = async (text: string, key: string) => {
    const startedIn = generation;
    const found = await options.find(text);
    if (found === undefined) return undefined;
    const fresh = remember(found, now());
    // A change that arrived meanwhile may be newer than what was found.
    if (startedIn === generation) memory.set(key, fresh);
    return fresh;
  };
  return {
    async authenticate(text) {
      const key = hash("sha256", text, "base64");
      const known = memory.get(key);
      const nowMs = now();
      const age = options.wakeups.isListening() ? maxAgeMs.listening : maxAgeMs.deaf;
      const entry = known && nowMs - known.fetchedAtMs < age ? known : await look(text, key);
      if (entry === undefined || entry.expiresAtMs <= nowMs) return undefined;
      noteUse(options, entry, nowMs);
      return entry.found;
    },
    forget,
    close: stop,
  };
}

function remember(found: Authenticated, fetchedAtMs: number): Remembered {
  return {
    found,
    fetchedAtMs,
    expiresAtMs: found.expires_at === null ? Infinity : Date.parse(found.expires_at),
    usedAtMs: found.last_used_at === null ? 0 : Date.parse(found.last_used_at),
  };
}

// The request does not wait for it; a lost note costs nothing.
function noteUse(options: AuthenticatorOptions, entry: Remembered, nowMs: number): void {
  if (nowMs - entry.usedAtMs < useEveryMs) return;
  entry.usedAtMs = nowMs;
  options
    .recordUse(entry.found.caller.token_id)
    .catch((error: unknown) => options.log.warn({ error: String(error) }, "could not note a token's use"));
}
