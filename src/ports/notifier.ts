/**
 * A channel to the people who run the platform: a folder, e-mail, a webhook. A message may arrive twice, with the same id, when the process
 * that sent it ended before recording that. A message may hold a link that authorizes a decision, so its content must go nowhere else.
 */
export interface Notifier {
  /** Unique among the configured notifiers; stored in the rows of pending messages. */
  readonly name: string;
  /** Tries once, for at most half a minute. A failure of the receiver is an outcome; the caller retries later. */
  deliver(message: Message, signal: AbortSignal): Promise<Delivery>;
}

/** Creates a notifier that mails to an address which an organization has named and confirmed. Null when the platform sends no mail. */
export type MailTo = ((address: string) => Notifier) | null;

/** `reason` is for the operator. It contains nothing of the message and no secret. */
export type Delivery = { readonly outcome: "delivered" } | { readonly outcome: "failed"; readonly reason: string };

export interface Message {
  readonly id: string;
  /** Such as `approval` or `alert`. */
  readonly kind: string;
  /** One line. */
  readonly subject: string;
  /** Plain text, lines of any length. */
  readonly text: string;
  /** The link to open when the message asks for an action. Anyone who has it can perform the action. */
  readonly url: string | null;
  /** RFC 3339. */
  readonly created_at: string;
}
