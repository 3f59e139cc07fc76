import { isIP } from "node:net";

/** How addresses that tenants choose are found and judged. */
export interface AddressPolicy {
  /**
   * The addresses of a name; none when there are none. Not the system's resolver, whose few threads a slow name server of a tenant
   * would keep from the platform's own files.
   */
  readonly resolve: (hostname: string) => Promise<readonly string[]>;
  /** Whether an address may be connected to. */
  readonly mayReach: (address: string) => boolean;
}

export type PinnedAddress =
  | { readonly outcome: "found"; readonly address: string }
  | { readonly outcome: "unknown" | "closed"; readonly reason: string };

/** The one address to connect to for a host as `URL` spells it: looked up once, and allowed. */
export async function pinAddress(hostname: string, { resolve, mayReach }: AddressPolicy): Promise<PinnedAddress> {
  // URL writes every spelling of an IPv4 address in the usual one, and IPv6 in brackets.
  const literal = literalOf(hostname);
  const found = literal === undefined ? await resolve(hostname).catch(() => []) : [literal];
  if (found.length === 0) return { outcome: "unknown", reason: "The name of the host was not found." };
  const address = found.find(mayReach);
  if (address !== undefined) return { outcome: "found", address };
  const allow = "The operator can allow it with BERTH_OUTGOING_NETWORKS.";
  return { outcome: "closed", reason: `The address is private or the platform's own, so it is not called. ${allow}` };
}

/** The IP address that a host is; undefined for a name. */
export function literalOf(hostname: string): string | undefined {
  const literal = hostname.replace(/^\[|\]$/g, "");
  return isIP(literal) > 0 ? literal : undefined;
}
