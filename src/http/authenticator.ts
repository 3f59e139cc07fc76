import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Log } from "../kit/log.ts";
import type { Wakeups } from "../store/wakeups.ts";
import type { Authenticated } from "../features/tokens/tokens.ts";

/** Finds a token's caller, usually in a cache. Revoked, expired and suspended tokens stop working within a second. */
export interface Authenticator {
  authenticate(text: string): Promise<Authenticated | undefined>;
  /** Clears the cache. Results of look-ups in progress are not cached. */
  forget(): void;
}

export interface AuthenticatorOptions {
  readonly wakeups: Wakeups;
  readonly log: Log;
  readonly find: (text: string) => Promise<Authenticated | undefined>;
  readonly recordUse: (tokenId: string) => Promise<void>;
  /** Returns milliseconds since 1970. Defaults to the machine's clock. */
  readonly now?: () => number;
}

interface Remembered {
  readonly found: Authenticated;
  readonly fetchedAtMs: number;
  readonly expiresAtMs: number;
  usedAtMs: number;
}

const mostTokens = 10_000;
// While wake-ups arrive, a change clears the cache at once; otherwise an entry must not outlive the promised second.
const maxAgeMs = { listening: 60_000, deaf: 1000 };
const useEveryMs = 60_000;

/** Caches tokens by their SHA-256. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const memory = new LRUCache<string, Remembered>({ max: mostTokens });
  const now = options.now ?? Date.now;
  let generation = 0;
  const forget = () => {
    generation += 1;
    memory.clear();
  };
  options.wakeups.on("tokens", forget);
  const look = async (text: string, key: string) => {
    const startedIn = generation;
    const found = await options.find(text);
    if (found === undefined) return undefined;
    const fresh = remember(found, now());
    // A change during the look-up may be newer than its result, so the result is not cached then.
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

// The request does not wait for this; a lost record of use does no harm.
function noteUse(options: AuthenticatorOptions, entry: Remembered, nowMs: number): void {
  if (nowMs - entry.usedAtMs < useEveryMs) return;
  entry.usedAtMs = nowMs;
  options
    .recordUse(entry.found.caller.token_id)
    .catch((error: unknown) => options.log.warn({ error: String(error) }, "could not record a token's use"));
}
