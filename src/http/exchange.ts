import type { SuccessStatus } from "../contract/table.ts";
import type { HandlerPlatform, ServerEvent, Tunnel } from "../features/context.ts";
import type { Log } from "../kit/log.ts";
import type { Authenticator } from "./authenticator.ts";
import type { OpenCount } from "./open-count.ts";
import type { RawInput } from "./parse.ts";
import type { RateLimiter } from "./rate-limiter.ts";

/** What a request is answered with; `text` is JSON, absent for 204. */
export interface Answer {
  readonly status: SuccessStatus;
  readonly text?: string;
  /** Instead of a text. `end` is to be called when it is over. */
  readonly stream?: {
    readonly events: AsyncIterable<ServerEvent>;
    readonly signal: AbortSignal;
    readonly end: () => void;
  };
  /** Instead of a text, for an upgrade. `end` is to be called when it is over. */
  readonly tunnel?: {
    readonly work: (tunnel: Tunnel) => Promise<void>;
    readonly signal: AbortSignal;
    readonly end: () => void;
  };
}

export interface PipelineRequest extends RawInput {
  /** The bearer token, when one was sent. */
  readonly token: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly lastEventId: string | undefined;
  /** Where the request comes from. */
  readonly address: string;
  readonly requestId: string;
  /** A WebSocket is asked for. */
  readonly isUpgrade?: boolean;
  /** Aborts when the client leaves. */
  readonly gone: () => AbortSignal;
  /** Calls back once when the answer is sent or the client has left. */
  readonly whenOver: (call: () => void) => void;
  /** Adds to the answer's headers, also when it is an error. */
  readonly setHeaders: (headers: Readonly<Record<string, string>>) => void;
}

export interface PipelineOptions {
  readonly platform: HandlerPlatform;
  readonly authenticator: Pick<Authenticator, "authenticate" | "forget">;
  readonly limiter: RateLimiter;
  readonly streams: OpenCount;
  /** Requests of large rows that are not yet answered, or whose answers are not yet with their clients. */
  readonly large: OpenCount;
  /** Aborts when the platform stops. */
  readonly closing: AbortSignal;
  /** How long any outcome is waited for. */
  readonly outcomeDeadlineMs: number;
  readonly log: Log;
}
