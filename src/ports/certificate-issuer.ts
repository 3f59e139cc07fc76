/** A certificate authority. What it refuses is an outcome; only a fault of ours is thrown. */
export interface CertificateIssuer {
  /** Orders one certificate with a new key. Gives up after a few minutes: `unreachable`. Not idempotent: each call is an order. */
  order(order: CertificateOrder, challenges: ChallengePublisher): Promise<OrderOutcome>;
  /** The key of a new account. */
  createAccountKey(): Promise<string>;
  /** The time in which the authority suggests to renew (RFC 9773); it may change. Null: the authority suggests none. */
  suggestedRenewal(chainPem: string): Promise<RenewalWindow | null>;
  /** The names of the authority in CAA records; none: it does not say, or is not reached. */
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

/** Who orders. The account is registered with the first order. */
export interface IssuerAccount {
  /** Secret. */
  readonly key_pem: string;
  /** Null: not registered yet. */
  readonly url: string | null;
}

/** Puts the answer to a challenge where the authority looks for it. */
export interface ChallengePublisher {
  publish(challenge: Challenge): Promise<void>;
  /** Also called when `publish` failed. */
  withdraw(challenge: Challenge): Promise<void>;
}

export interface Challenge {
  /** Without `*.`. */
  readonly hostname: string;
  readonly token: string;
  /** For `http-01` the body of the answer, for `dns-01` the text of the TXT record. */
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

/**
 * `account`: it is unknown, deactivated or revoked, and another one must be registered. `publish`: the answer to a challenge could not
 * be published. `challenge`: the authority did not see its answer.
 */
export type OrderRefusal = "unreachable" | "publish" | "rate_limited" | "account" | "challenge" | "caa" | "rejected";
