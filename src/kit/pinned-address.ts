import { isIP } from "node:net";

/** How addresses that tenants choose are resolved and checked. */
export interface AddressPolicy {
  /** Returns a name's addresses, without the system's resolver: a slow name server would occupy the threads of file operations. */
  readonly resolve: (hostname: string) => Promise<readonly string[]>;
  /** Returns whether connections to an address are allowed. */
  readonly mayReach: (address: string) => boolean;
}

export type PinnedAddress =
  | { readonly outcome: "found"; readonly address: string }
  | { readonly outcome: "unknown" | "closed"; readonly reason: string };

/** Resolves a host, spelled as in `URL`, once and returns the one allowed address to connect to. */
export async function pinAddress(hostname: string, { resolve, mayReach }: AddressPolicy): Promise<PinnedAddress> {
  // URL normalizes every spelling of an IPv4 address, and puts IPv6 in brackets.
  const literal = literalOf(hostname);
  const found = literal === undefined ? await resolve(hostname).catch(() => []) : [literal];
  if (found.length === 0) return { outcome: "unknown", reason: "The name of the host was not found." };
  const address = found.find(mayReach);
  if (address !== undefined) return { outcome: "found", address };
  const allow = "The operator can allow it with BERTH_OUTGOING_NETWORKS.";
  return { outcome: "closed", reason: `The address is private or the platform's own, so it is not called. ${allow}` };
}

/** Returns the IP address if the host is one; undefined for a name. */
export function literalOf(hostname: string): string | undefined {
  const literal = hostname.replace(/^\[|\]$/g, "");
  return isIP(literal) > 0 ? literal : undefined;
}
