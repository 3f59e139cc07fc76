/** What the person who starts the server decides. */
export interface Offer {
  /** Only what changes nothing. */
  readonly readOnly: boolean;
  /** Only these projects; null: all that the token sees. */
  readonly allowed: readonly string[] | null;
  /** Meant when a call names no project. */
  readonly project: string | undefined;
}
