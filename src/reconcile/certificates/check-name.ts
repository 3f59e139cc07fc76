import { randomBytes } from "node:crypto";
import { get } from "node:http";
import { isIPv6 } from "node:net";
import { deleteChallenge, insertChallenge, type DueCertificate } from "../../features/certificates/certificates.ts";
import { addressesElsewhere, domainNamed } from "../../features/domains/domains.ts";
import type { DnsAnswer } from "../../ports/dns.ts";
import type { Platform } from "../platform.ts";

const probeTimeoutMs = 5000;

/** Returns, as a sentence, why no certificate may be ordered for a name; null if its records lead here and a test request came back. */
export async function checkName(platform: Platform, { hostname, challenge }: DueCertificate): Promise<string | null> {
  const { dns } = platform.ports;
  const forbidden = async () =>
    evaluateAuthorities(await dns.authorities(hostname), (await platform.ports.certificateIssuer?.identities()) ?? []);
  // A wildcard is proven by a DNS record, wherever the name leads.
  if (challenge === "dns-01") return forbidden();
  const [addresses, alias] = [await dns.addresses(hostname), await dns.alias(hostname)];
  const { publicAddresses } = platform.domains;
  const wrong = evaluateRecords({ addresses, alias }, publicAddresses);
  if (wrong !== null) return wrong;
  const domain = await domainNamed(platform.db, hostname);
  if (domain?.verified_at === null) return `the name is not served yet. ${domain.dns_detail}`;
  return (
    (await forbidden()) ?? (await probe(platform, hostname, addresses.outcome === "found" ? addresses.values : []))
  );
}

/** Requests a token through the name, as the authority will, at each of its addresses. */
async function probe(platform: Platform, hostname: string, addresses: readonly string[]): Promise<string | null> {
  const { httpPort: port, probe: isOn } = platform.certificates;
  if (!isOn) return null;
  const [token, answer] = [`berth-probe-${randomBytes(16).toString("hex")}`, randomBytes(16).toString("hex")];
  await insertChallenge(platform.db, { token, hostname, answer });
  try {
    for (const host of addresses) {
      const seen = await request({ host, port, hostname, path: `/.well-known/acme-challenge/${token}` });
      if (seen.outcome === "failed")
        return `port ${port} of ${host} can't be reached (${seen.code}), but the certificate authority checks the name there. Open the port, or forward it to the platform.`;
      if (seen.body !== answer)
        return `another server answers for the name at ${host}, port ${port} (status ${seen.status}). Forward that port to the platform.`;
    }
    return null;
  } finally {
    await deleteChallenge(platform.db, token);
  }
}

type Seen =
  | { readonly outcome: "answered"; readonly status: number; readonly body: string }
  | { readonly outcome: "failed"; readonly code: string };

interface Asked {
  readonly host: string;
  readonly port: number;
  readonly hostname: string;
  readonly path: string;
}

// Berth's own response is never longer than this.
const mostBytes = 1024;

function request({ host, port, hostname, path }: Asked): Promise<Seen> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(probeTimeoutMs);
    const headers = { host: hostname, "user-agent": "berth-probe/1.0" };
    const asking = get({ host, port, path, headers, agent: false, signal }, (response) => {
      let body = "";
      response.setEncoding("latin1").on("data", (chunk: string) => {
        body += chunk;
        if (body.length > mostBytes) response.destroy();
      });
      response.on("close", () => resolve({ outcome: "answered", status: response.statusCode ?? 0, body }));
      response.on("error", () => {});
    });
    asking.on("error", (error: NodeJS.ErrnoException) => {
      resolve({ outcome: "failed", code: signal.aborted ? "no answer in time" : (error.code ?? error.message) });
    });
  });
}

/** The DNS records that say where a name leads. */
interface Records {
  readonly addresses: DnsAnswer;
  readonly alias: DnsAnswer;
}

/** Returns why a certificate authority can't reach the platform under a name; null if nothing prevents it. */
function evaluateRecords({ addresses, alias }: Records, ownAddresses: readonly string[]): string | null {
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

/** Returns why CAA records (RFC 8659) forbid the authority, or null. An unknown authority is stopped only by a ban of all. */
function evaluateAuthorities(records: DnsAnswer, identities: readonly string[]): string | null {
  if (records.outcome === "unavailable") return "the DNS servers do not answer for the name's CAA records.";
  if (records.outcome === "none") return null;
  const allowed = records.values.map((value) => (value.split(";")[0] as string).trim()).filter((value) => value !== "");
  const isAllowed = identities.length === 0 ? allowed.length > 0 : allowed.some((value) => identities.includes(value));
  if (isAllowed) return null;
  const own = identities.length === 0 ? "the certificate authority in use" : identities.join(" or ");
  return `a CAA record of the name allows only ${allowed.join(", ") || "nobody"} to issue. Add one for ${own}.`;
}
