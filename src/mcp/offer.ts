/** What a connection offers. */
export interface Offer {
  /** Offer only calls that change nothing. */
  readonly readOnly: boolean;
}
