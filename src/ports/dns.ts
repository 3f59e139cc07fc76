/** Queries public DNS without a cache, within the adapter's time limit. Server errors are outcomes; Berth's own faults are thrown. */
export interface Dns {
  /** Returns all IPv4 and IPv6 addresses, following aliases. */
  addresses(hostname: string): Promise<DnsAnswer>;
  /** Returns the TXT records of exactly this name or its alias, the strings of each record joined. */
  texts(hostname: string): Promise<DnsAnswer>;
  /** Returns the CNAME target of this name. */
  alias(hostname: string): Promise<DnsAnswer>;
  /** Returns the values of the `issue` records that apply to the name (CAA, RFC 8659 §3): its own, or else those of its nearest parent. */
  authorities(hostname: string): Promise<DnsAnswer>;
}

/** `none`: the servers answered that no such record exists. `unavailable`: no usable answer, so conclude nothing. */
export type DnsAnswer =
  | { readonly outcome: "found"; readonly values: readonly string[] }
  | { readonly outcome: "none" }
  | { readonly outcome: "unavailable" };
