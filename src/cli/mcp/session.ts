import type { Client } from "../../contract/client.ts";
import type { Confinement } from "./confine.ts";
import type { Offer } from "./offer.ts";

/** What one call of a tool works with. */
export interface Session {
  readonly client: Client;
  readonly offer: Offer;
  readonly confinement: Confinement;
  /** Aborts when the client cancels the call or leaves. */
  readonly signal: AbortSignal;
  /** Tells the client how far it is, where it asked for that. */
  readonly say: (message: string) => void;
  /** Does something that may take long, and tells the client every few seconds that it goes on. */
  readonly working: <T>(label: string, work: () => Promise<T>) => Promise<T>;
}
