/**
 * What the world's DNS says about a name at this moment. Nothing is kept between questions. Each answers within the adapter's
 * time limit, whatever the servers do, and throws only for a fault of ours: what servers do wrong is an outcome.
 */
export interface Dns {
  /** All IPv4 and IPv6 addresses, behind aliases too. */
  addresses(hostname: string): Promise<DnsAnswer>;
  /** The TXT records of exactly this name or its alias; the parts of a record are joined. */
  texts(hostname: string): Promise<DnsAnswer>;
  /** The name that this one is a CNAME of. */
  alias(hostname: string): Promise<DnsAnswer>;
  /** The values of the `issue` records (CAA, RFC 8659 §3) that hold for the name: its own, else its nearest parent's. */
  authorities(hostname: string): Promise<DnsAnswer>;
}

/** `none`: the servers say that there is nothing. `unavailable`: they did not say, and nothing may be concluded. */
export type DnsAnswer =
  | { readonly outcome: "found"; readonly values: readonly string[] }
  | { readonly outcome: "none" }
  | { readonly outcome: "unavailable" };
