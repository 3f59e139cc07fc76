import type { OwnNames } from "./parse-hostname.ts";

/** The platform's names, all in lower case, and its addresses. */
export interface DomainSettings extends OwnNames {
  /** IP addresses that users' DNS records must point to; at least one. */
  readonly publicAddresses: readonly string[];
  /** Whether other machines can reach those addresses; false on a machine that listens only locally. */
  readonly isPublic: boolean;
  /** How long a hostname stays served after its records stopped pointing here. */
  readonly graceMs: number;
  /** Whether a certificate is ordered for every hostname that is served. */
  readonly ordersCertificates: boolean;
  /** Whether the edge has a certificate that covers a hostname. */
  readonly servesHttps: (hostname: string) => boolean;
}
