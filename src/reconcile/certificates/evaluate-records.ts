import { isIPv6 } from "node:net";
import { addressesElsewhere } from "../../features/domains/domains.ts";
import type { DnsAnswer } from "../../ports/dns.ts";

/** The DNS records that say where a name leads. */
export interface Records {
  readonly addresses: DnsAnswer;
  readonly alias: DnsAnswer;
}

/** Returns why a certificate authority can't reach the platform under a name; null if nothing prevents it. */
export function evaluateRecords({ addresses, alias }: Records, ownAddresses: readonly string[]): string | null {
  if (addresses.outcome === "unavailable") return "the DNS servers do not answer for the name.";
  const isAlias = alias.outcome === "found" ? alias.values[0] : undefined;
  if (addresses.outcome === "none")
    return isAlias === undefined
      ? "the name has no A or AAAA record."
      : `the name is an alias (CNAME) of ${isAlias}, which has no address.`;
  const elsewhere = addressesElsewhere(addresses.values, ownAddresses);
  if (elsewhere.length === 0) return null;
  const list = elsewhere.slice(0, 3).join(", ");
  if (isAlias !== undefined) return `the name is an alias (CNAME) of ${isAlias}, which points to ${list}, not here.`;
  const isPartly = elsewhere.length < addresses.values.length;
  if (isPartly && elsewhere.every((address) => isIPv6(address)))
    return `the name's AAAA record points to ${list}, not here, and certificate authorities prefer IPv6. Correct or remove it.`;
  return isPartly ? `the name also points to ${list}: remove those records.` : `the name points to ${list}, not here.`;
}

/**
 * Returns why CAA records (RFC 8659) forbid the authority; null if they allow it. An authority whose identities are unknown is only stopped
 * by a record that forbids all.
 */
export function evaluateAuthorities(records: DnsAnswer, identities: readonly string[]): string | null {
  if (records.outcome === "unavailable") return "the DNS servers do not answer for the name's CAA records.";
  if (records.outcome === "none") return null;
  const allowed = records.values.map((value) => (value.split(";")[0] as string).trim()).filter((value) => value !== "");
  const isAllowed = identities.length === 0 ? allowed.length > 0 : allowed.some((value) => identities.includes(value));
  if (isAllowed) return null;
  const own = identities.length === 0 ? "the certificate authority in use" : identities.join(" or ");
  return `a CAA record of the name allows only ${allowed.join(", ") || "nobody"} to issue. Add one for ${own}.`;
}
