import type { OwnNames } from "./parse-hostname.ts";

/** What the platform is called and where it is reached. All names are in lower case. */
export interface DomainSettings extends OwnNames {
  /** IP addresses that records of users' hostnames must have; at least one. */
  readonly publicAddresses: readonly string[];
  /** Whether visitors from elsewhere reach those addresses; on a machine that listens for itself alone they cannot. */
  readonly isPublic: boolean;
  /** How long a hostname is served after its records were lost. */
  readonly graceMs: number;
  /** Whether a certificate is ordered for every hostname that is served. */
  readonly ordersCertificates: boolean;
  /** Whether the edge has a certificate for a hostname, its own or one that covers it. */
  readonly servesHttps: (hostname: string) => boolean;
}
