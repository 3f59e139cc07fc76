import type { Client } from "../contract/client.ts";
import type { Offer } from "./offer.ts";

/** The context of one tool call. */
export interface Session {
  readonly client: Client;
  readonly offer: Offer;
  /** Aborts when the client cancels the call or disconnects. */
  readonly signal: AbortSignal;
  /** Reports progress to the client, if it asked for that. */
  readonly say: (message: string) => void;
  /** Runs work that may take long, and reports to the client every few seconds that it continues. */
  readonly working: <T>(label: string, work: () => Promise<T>) => Promise<T>;
}
