/**
 * A way to reach the people who run the platform: a folder, e-mail, a webhook. A message may come twice (whoever was to write down that
 * it was sent may have ended before), always with the same id. What is sent may hold a link that decides something, so nothing of it
 * may get anywhere else.
 */
export interface Notifier {
  /** Unique among those in use; stands in the rows of messages that wait. */
  readonly name: string;
  /** Sends it once and within half a minute. What the other side does wrong is an outcome; the caller tries again later. */
  deliver(message: Message, signal: AbortSignal): Promise<Delivery>;
}

/** Mail to an address that an organization has named and confirmed; null: the platform sends none. */
export type MailTo = ((address: string) => Notifier) | null;

/** `reason` is for the operator and repeats nothing of the message and no secret. */
export type Delivery = { readonly outcome: "delivered" } | { readonly outcome: "failed"; readonly reason: string };

export interface Message {
  readonly id: string;
  /** Such as `approval` or `alert`. */
  readonly kind: string;
  /** One line. */
  readonly subject: string;
  /** Plain text, lines of any length. */
  readonly text: string;
  /** Where to go, when there is something to do. Its possession suffices to do it. */
  readonly url: string | null;
  /** RFC 3339. */
  readonly created_at: string;
}
