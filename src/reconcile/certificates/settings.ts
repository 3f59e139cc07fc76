import type { EdgeCertificate, Target } from "../../ports/edge.ts";

export interface CertificateSettings {
  /** The authority's ACME directory URL; null: no certificates are ordered. */
  readonly directory: string | null;
  /** How many first certificates are ordered for names below one registered domain in seven days. */
  readonly weeklyFirsts: number;
  /** How many of them for previews. */
  readonly weeklyPreviews: number;
  /** The port at which the authority requests challenges: 80, except for test authorities. */
  readonly httpPort: number;
  /** Whether to request a test token through a name before ordering a certificate for it. */
  readonly probe: boolean;
  /** Where the control plane serves challenges and its own hostname; null: it is not reached through an edge. */
  readonly control: Target | null;
  /** The control plane's hostname, if it is a public one. */
  readonly controlHost: string | null;
  readonly appsDomain: string | null;
  readonly hsts: boolean;
  /** The platform's own certificates, read from files. */
  readonly own: () => readonly EdgeCertificate[];
}
