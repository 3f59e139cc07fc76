/** Restrictions chosen by the person who starts the server. */
export interface Offer {
  /** Offer only calls that change nothing. */
  readonly readOnly: boolean;
  /** Offer only these projects; null: all that the token can see. */
  readonly allowed: readonly string[] | null;
  /** Default for calls that name no project. */
  readonly project: string | undefined;
}
