import type { SuccessStatus } from "../contract/table.ts";
import type { HandlerPlatform, ServerEvent, Tunnel } from "../features/context.ts";
import type { Log } from "../kit/log.ts";
import type { Authenticator } from "./authenticator.ts";
import type { ChangeSlots } from "./change-slots.ts";
import type { CallerCount, OpenCount } from "./open-count.ts";
import type { RawInput } from "./parse.ts";
import type { RateLimiter } from "./rate-limiter.ts";

/** The response to a request. `text` is JSON, absent for 204. */
export interface Answer {
  readonly status: SuccessStatus;
  readonly text?: string;
  /** Set instead of `text` for a stream. Call `end` when it is over. */
  readonly stream?: {
    readonly events: AsyncIterable<ServerEvent>;
    readonly signal: AbortSignal;
    readonly end: () => void;
  };
  /** Set instead of `text` for an upgrade. Call `end` when it is over. */
  readonly tunnel?: {
    readonly work: (tunnel: Tunnel) => Promise<void>;
    readonly signal: AbortSignal;
    readonly end: () => void;
  };
}

export interface PipelineRequest extends RawInput {
  /** The bearer token, if one was sent. */
  readonly token: string | undefined;
  readonly idempotencyKey: string | undefined;
  readonly lastEventId: string | undefined;
  readonly address: string;
  readonly requestId: string;
  /** The request asks for an upgrade to a WebSocket. */
  readonly isUpgrade?: boolean;
  /** Returns a signal that aborts when the client disconnects. */
  readonly gone: () => AbortSignal;
  /** Calls back once, when the response has been sent or the client has disconnected. */
  readonly whenOver: (call: () => void) => void;
  /** Adds headers to the response, even if it is an error. */
  readonly setHeaders: (headers: Readonly<Record<string, string>>) => void;
}

export interface PipelineOptions {
  readonly platform: HandlerPlatform;
  readonly authenticator: Pick<Authenticator, "authenticate" | "forget">;
  readonly limiter: RateLimiter;
  readonly streams: CallerCount;
  /** Counts requests of large rows that are unanswered, or whose clients have not received the whole response. */
  readonly large: CallerCount;
  /** Counts an organization's requests of rows with `handles_source`, until their work has ended. */
  readonly sourceRequests: OpenCount;
  /** Counts an organization's requests whose bodies are larger than usual, from their heads to their responses. */
  readonly largeBodies: OpenCount;
  readonly changeSlots: ChangeSlots;
  /** Aborts when the platform stops. */
  readonly closing: AbortSignal;
  /** How long a request waits for an outcome. */
  readonly outcomeDeadlineMs: number;
  readonly log: Log;
}
