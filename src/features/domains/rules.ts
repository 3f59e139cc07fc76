import { BlockList, isIPv6 } from "node:net";
import type { NameStatus } from "../../contract/states.ts";
import type { DnsAnswer } from "../../ports/dns.ts";

/** What is stored about an attached hostname before a lookup. */
export interface KnownDomain {
  readonly hostname: string;
  readonly dns_status: NameStatus;
  readonly created_at: string;
  readonly txt_seen_at: string | null;
  readonly verified_at: string | null;
  readonly lost_at: string | null;
  /** The text that the organization's TXT record must contain. */
  readonly proof: string;
  /** Whether addresses alone are not enough proof, because another organization has or had the name or its zone. */
  readonly needs_txt: boolean;
}

export interface DnsObservation {
  readonly addresses: DnsAnswer;
  readonly texts: DnsAnswer;
}

export interface DnsResult {
  readonly dns_status: NameStatus;
  readonly dns_detail: string;
  readonly txt_seen: boolean;
  /** `serve`: the name belongs to its project. `lost`: it did, and points elsewhere now. `keep`: the lookup was inconclusive. */
  readonly verdict: "serve" | "lost" | "withhold" | "keep";
}

/** Evaluates a DNS lookup. A lookup without a response changes nothing, so that a DNS failure takes no hostname offline. */
export function evaluateDns(domain: KnownDomain, seen: DnsObservation, ownAddresses: readonly string[]): DnsResult {
  if (seen.addresses.outcome === "unavailable") return unanswered(domain);
  const txt_seen = seen.texts.outcome === "found" && seen.texts.values.some((text) => text.trim() === domain.proof);
  const isProven = txt_seen || domain.txt_seen_at !== null || !domain.needs_txt;
  const found = seen.addresses.outcome === "found" ? seen.addresses.values : [];
  const own = found.filter(isOneOf(ownAddresses));
  const elsewhere = found.filter((address) => !own.includes(address));
  // The TXT record proves ownership even where a proxy hides the addresses; without it the addresses must point here.
  const isOurs = txt_seen || (own.length > 0 && isProven);
  return { ...told(domain, { own, elsewhere, isProven, txt_seen }), txt_seen, verdict: verdictOf(domain, isOurs) };
}

function unanswered(domain: KnownDomain): DnsResult {
  const dns_detail = "The DNS servers did not respond. Berth tries again soon.";
  return { dns_status: domain.dns_status, dns_detail, txt_seen: false, verdict: "keep" };
}

function verdictOf(domain: KnownDomain, isOurs: boolean): DnsResult["verdict"] {
  if (isOurs) return "serve";
  return domain.verified_at === null ? "withhold" : "lost";
}

interface Seen {
  readonly own: readonly string[];
  readonly elsewhere: readonly string[];
  readonly isProven: boolean;
  readonly txt_seen: boolean;
}

function told(domain: KnownDomain, seen: Seen): Pick<DnsResult, "dns_status" | "dns_detail"> {
  const { own, elsewhere, isProven } = seen;
  if (own.length === 0 && elsewhere.length === 0) return missing(domain);
  if (elsewhere.length > 0) return { dns_status: "mismatch", dns_detail: mismatchText(domain, seen) };
  if (isProven) return { dns_status: "ok", dns_detail: "The name points here." };
  return {
    dns_status: "pending",
    dns_detail: `The name points here; the TXT record ${proofName(domain.hostname)} is still missing.`,
  };
}

function missing(domain: KnownDomain): Pick<DnsResult, "dns_status" | "dns_detail"> {
  if (domain.verified_at !== null)
    return { dns_status: "mismatch", dns_detail: "The name no longer has an address in DNS." };
  return { dns_status: "pending", dns_detail: "The name has no address in DNS yet." };
}

function mismatchText({ hostname, proof }: KnownDomain, { own, elsewhere, txt_seen }: Seen): string {
  const shown = elsewhere.slice(0, 3).join(", ");
  const list = elsewhere.length > 3 ? `${shown} and ${elsewhere.length - 3} more` : shown;
  if (own.length > 0) return `The name also points to ${list}: remove those records, or some visitors end up there.`;
  if (!elsewhere.some(isOfProxy))
    return `The name points to ${list}, not here. Correct the record; if a proxy is in front of it, switch the proxy off.`;
  if (txt_seen)
    return `The name points to a proxy (${list}). The TXT record proves that it is yours, so it is served for the proxy.`;
  const record = `the TXT record ${proofName(hostname)} with the value ${proof}`;
  return `The name points to a proxy (${list}). Switch the proxy off for this record ("DNS only"), or add ${record}.`;
}

export function proofName(hostname: string): string {
  return `_berth.${hostname}`;
}

/** Returns those of a name's addresses that are not the platform's. */
export function addressesElsewhere(found: readonly string[], own: readonly string[]): readonly string[] {
  const isOwn = isOneOf(own);
  return found.filter((address) => !isOwn(address));
}

function isOneOf(addresses: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const address of addresses) list.addAddress(address, familyOf(address));
  return (address) => list.check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
}

// Cloudflare's published ranges (www.cloudflare.com/ips, 2023-09-28). Many names are behind this proxy without their owners' knowledge.
const proxies = new BlockList();
for (const [network, prefix] of [
  ["173.245.48.0", 20],
  ["103.21.244.0", 22],
  ["103.22.200.0", 22],
  ["103.31.4.0", 22],
  ["141.101.64.0", 18],
  ["108.162.192.0", 18],
  ["190.93.240.0", 20],
  ["188.114.96.0", 20],
  ["197.234.240.0", 22],
  ["198.41.128.0", 17],
  ["162.158.0.0", 15],
  ["104.16.0.0", 13],
  ["104.24.0.0", 14],
  ["172.64.0.0", 13],
  ["131.0.72.0", 22],
  ["2400:cb00::", 32],
  ["2606:4700::", 32],
  ["2803:f800::", 32],
  ["2405:b500::", 32],
  ["2405:8100::", 32],
  ["2a06:98c0::", 29],
  ["2c0f:f248::", 32],
] as const)
  proxies.addSubnet(network, prefix, familyOf(network));

function isOfProxy(address: string): boolean {
  return proxies.check(address, familyOf(address));
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Returns the pause before the next lookup: short while records may be being created or a name is `lost`, an hour for a stable one. */
export function nextCheckMs(domain: Pick<KnownDomain, "created_at">, evaluated: DnsResult, nowMs: number): number {
  if (evaluated.verdict === "keep" || evaluated.verdict === "lost") return 2 * minuteMs;
  if (evaluated.dns_status === "ok") return hourMs;
  const ageMs = nowMs - Date.parse(domain.created_at);
  if (ageMs < hourMs) return 15_000;
  return ageMs < 24 * hourMs ? 5 * minuteMs : hourMs;
}
