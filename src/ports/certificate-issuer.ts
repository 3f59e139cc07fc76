/** A certificate authority. A refusal by the authority is an outcome; only Berth's own faults are thrown. */
export interface CertificateIssuer {
  /** Orders one certificate with a new key. Returns `unreachable` after a few minutes without success. Not idempotent: each call places an order. */
  order(order: CertificateOrder, challenges: ChallengePublisher): Promise<OrderOutcome>;
  createAccountKey(): Promise<string>;
  /** Returns the renewal window that the authority suggests (RFC 9773), or null when it suggests none. The window may change. */
  suggestedRenewal(chainPem: string): Promise<RenewalWindow | null>;
  /** Returns the names that identify the authority in CAA records. Empty when it publishes none or can't be reached. */
  identities(): Promise<readonly string[]>;
}

export interface RenewalWindow {
  readonly from: Date;
  readonly to: Date;
}

export interface CertificateOrder {
  readonly names: readonly string[];
  readonly challenge: ChallengeKind;
  readonly account: IssuerAccount;
}

export type ChallengeKind = "http-01" | "dns-01";

/** The account that orders. It is registered with the first order. */
export interface IssuerAccount {
  /** Secret. */
  readonly key_pem: string;
  /** Null: not registered yet. */
  readonly url: string | null;
}

/** Publishes the response to a challenge where the authority looks for it. */
export interface ChallengePublisher {
  publish(challenge: Challenge): Promise<void>;
  /** Also called when `publish` failed. */
  withdraw(challenge: Challenge): Promise<void>;
}

export interface Challenge {
  /** Without `*.`. */
  readonly hostname: string;
  readonly token: string;
  /** For `http-01` the response body, for `dns-01` the text of the TXT record. */
  readonly text: string;
}

export type OrderOutcome =
  | { readonly outcome: "issued"; readonly chain_pem: string; readonly key_pem: string; readonly account_url: string }
  | {
      readonly outcome: "refused";
      readonly reason: OrderRefusal;
      readonly detail: string;
      readonly not_before: Date | null;
    };

/** `account`: unknown or revoked, register anew. `publish`: the response was not published. `challenge`: it was not found. */
export type OrderRefusal = "unreachable" | "publish" | "rate_limited" | "account" | "challenge" | "caa" | "rejected";
