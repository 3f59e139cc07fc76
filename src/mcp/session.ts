import type { Watch } from "../client/outcomes.ts";
import type { Offer } from "./offer.ts";

/** The context of one tool call. Its signal aborts when the client cancels the call or disconnects; progress goes to a client that asked for it. */
export interface Session extends Watch {
  readonly offer: Offer;
  /** Runs work that may take long, and reports to the client every few seconds that it continues. */
  readonly working: <T>(label: string, work: () => Promise<T>) => Promise<T>;
}
