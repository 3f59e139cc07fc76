import { Refused } from "../features/context.ts";
import { linkSignals } from "../kit/link-signals.ts";
import type { Wakeups } from "../store/wakeups.ts";
import type { Authenticator } from "./authenticator.ts";

/** Watches a long-running request: its signal aborts when the caller loses the right to the response. */
export interface CallerWatch {
  readonly signal: AbortSignal;
  end(): void;
}

export interface Watched {
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly wakeups: Wakeups;
  /** The token's text; undefined for rows that need none. */
  readonly token: string | undefined;
  /** Abort when the client disconnects or the platform stops. */
  readonly ends: readonly AbortSignal[];
}

// Semantics: revocation, expiry and suspension take effect within a second, open streams included.
const pollEveryMs = 1000;

export function watchCaller({ authenticator, wakeups, token, ends }: Watched): CallerWatch {
  const over = linkSignals(...ends);
  const look = async () => {
    const found = await authenticator.authenticate(token ?? "");
    if (found === undefined) over.abort(new Refused("unauthorized"));
    else if (found.suspended) over.abort(new Refused("org_suspended"));
  };
  // A brief database outage does not end a request that was already admitted.
  const check = () => void look().catch(() => {});
  const timer = token === undefined ? undefined : setInterval(check, pollEveryMs);
  const stop = token === undefined ? () => {} : wakeups.on("tokens", check);
  return {
    signal: over.signal,
    end() {
      over.release();
      clearInterval(timer);
      stop();
    },
  };
}
