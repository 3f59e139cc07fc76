import type { EdgeCertificate, Target } from "../../ports/edge.ts";

/** How this installation comes to certificates. */
export interface CertificateSettings {
  /** Of the authority; null: nothing is ordered. */
  readonly directory: string | null;
  /** Where the authority reaches challenges: 80, but for test authorities. */
  readonly httpPort: number;
  /** Whether a name is asked for a token of ours before anything is ordered for it. */
  readonly probe: boolean;
  /** Where the control plane answers challenges and its own hostname; null: not over an edge. */
  readonly control: Target | null;
  /** The control plane's hostname, where it is a public one. */
  readonly controlHost: string | null;
  /** The apps domain, where it is a public one. */
  readonly appsDomain: string | null;
  readonly hsts: boolean;
  /** The platform's own certificates, from files. */
  readonly own: () => readonly EdgeCertificate[];
}
