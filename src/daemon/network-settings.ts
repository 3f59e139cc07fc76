import { isIP } from "node:net";
import { isNetwork } from "../kit/reachable-addresses.ts";
import { choice, flag, list, optional, setting, text, whole } from "./settings.ts";

const port = [0, 65_535] as const;
const faultOfNetwork = (value: string) => (isNetwork(value) ? undefined : "is not a network such as `10.0.0.0/8`");

export const addressSettings = {
  listen: text("BERTH_LISTEN", "127.0.0.1").means("The address that all three ports listen on."),
  httpPort: whole("BERTH_HTTP_PORT", 4000, port).means("Control plane: the API and git over HTTP."),
  edgePort: whole("BERTH_EDGE_PORT", 8080, port).means("Traffic to applications."),
  sshPort: whole("BERTH_SSH_PORT", 2222, port).means("git over SSH."),
  domain: text("BERTH_DOMAIN", "localhost").means("The domain under which every application gets a hostname."),
  hostNames: list("BERTH_HOST", (value) => (/^[a-z0-9.:-]+$/i.test(value) ? undefined : "is not a host name")).means(
    "The name under which users reach the control plane and git, `localhost` when unset; after a comma its further names, besides the machine's name, `localhost` and IP addresses.",
  ),
  publicAddresses: list("BERTH_PUBLIC_ADDRESSES", (value) =>
    isIP(value) > 0 ? undefined : "is not an IP address",
  ).means(
    "The IP addresses that the DNS records of users' hostnames must have; default: those of BERTH_LISTEN, which other machines cannot reach while it is 127.0.0.1.",
  ),
  dnsServers: list("BERTH_DNS_SERVERS", faultOfDnsServer).means(
    "The DNS servers that users' hostnames are looked up with, such as `192.0.2.1` or `192.0.2.1:5353`; default: the machine's own DNS servers.",
  ),
  haproxy: optional("BERTH_HAPROXY").means(
    "The HAProxy (2.6 or later) that carries the traffic to applications; default: the machine's, else one that Berth fetches into its data folder.",
  ),
  edge: optional("BERTH_EDGE").means("No effect: HAProxy is the only edge. Accepted until Berth 2.0."),
  maxBodyMib: whole("BERTH_MAX_BODY_MIB", 1024, [0, 1024 * 1024]).means(
    "The largest body of a request to an application; a larger one is answered with 413. 0: no limit.",
  ),
  trustedProxies: list("BERTH_TRUSTED_PROXIES", (value) =>
    isIP(value.replace(/\/\d{1,3}$/, "")) > 0 ? undefined : "is not an IP address or network",
  ).means(
    "The addresses of proxies in front of HAProxy, such as `192.0.2.1` or `192.0.2.0/24`, whose X-Forwarded-For and X-Forwarded-Proto HAProxy trusts.",
  ),
  outgoingNetworks: list("BERTH_OUTGOING_NETWORKS", faultOfNetwork).means(
    "Private networks, or addresses of this machine, that organizations' webhooks, followed repositories and the identity providers of the platform may be in although they are not public.",
  ),
  tenantNetworks: list("BERTH_TENANT_NETWORKS", faultOfNetwork).means(
    "Private networks that builds, applications and one-off runs may reach. All others are closed to them, except for name servers, the package servers of the operator's npm, pip and Go settings, and BERTH_PG_URL.",
  ),
  network: choice("BERTH_NETWORK", ["auto", "veth", "pasta", "shared"]).means(
    "How sandboxes are connected to the network: the best way that works on this machine, or a certain one.",
  ),
};

export const httpsSettings = {
  edgeTlsPort: whole("BERTH_EDGE_TLS_PORT", 8443, port).means(
    "The port for HTTPS of applications and of the control plane; used once certificates are ordered or given.",
  ),
  acmeDirectory: optional("BERTH_ACME_DIRECTORY").means(
    "Orders certificates from this authority: `letsencrypt`, `letsencrypt-staging`, or the URL of an ACME directory. When unset, Berth orders none.",
  ),
  acmeEmail: optional("BERTH_ACME_EMAIL").means("The e-mail address to which the authority writes about the account."),
  acmeCaFile: optional("BERTH_ACME_CA_FILE").means(
    "The CA that signed the directory's own certificate, if that is not a public CA.",
  ),
  acmeAccount: setting("BERTH_ACME_EAB", "", readAccount).means(
    "`key-id:hmac-key` of an external account (the key in base64url), where the authority requires one.",
  ),
  acmeHttpPort: whole("BERTH_ACME_HTTP_PORT", 80, [1, 65_535]).means(
    "The public port at which the authority requests challenges; only test authorities use another port than 80.",
  ),
  acmeProbe: flag("BERTH_ACME_PROBE", true).means(
    "Request each name over HTTP before a certificate is ordered; switch it off where the machine cannot reach its own public address.",
  ),
  dnsUpdateServer: optional("BERTH_DNS_UPDATE_SERVER").means(
    "The primary DNS server of the zone that holds `BERTH_DOMAIN`, such as `192.0.2.1` or `192.0.2.1:5353`: Berth orders one certificate for `*.<BERTH_DOMAIN>` and publishes the proof there by signed updates (RFC 2136).",
  ),
  dnsUpdateKeyFile: optional("BERTH_DNS_UPDATE_KEY_FILE").means(
    "The TSIG key that signs the updates to BERTH_DNS_UPDATE_SERVER, as `tsig-keygen` writes it. Only Berth's user may read the file.",
  ),
  certificateFiles: list("BERTH_CERTIFICATE_FILES", () => undefined).means(
    "PEM files, each with a certificate, its issuers and the private key: Berth serves them for the names in them instead of ordering certificates, and reads them again when they change.",
  ),
  hsts: flag("BERTH_HSTS", false).means("Send `Strict-Transport-Security` with every answer over HTTPS."),
};

/** Reads the id and the key of an external account; null if it is not set. */
function readAccount(given: string | undefined) {
  if (given === undefined) return null;
  const [, kid, hmacKey] = /^([^:]+):([\w-]+)$/.exec(given) ?? [];
  if (kid === undefined || hmacKey === undefined)
    throw new Error("BERTH_ACME_EAB must be a key id and a key in base64url, with a colon between them.");
  return { kid, hmacKey };
}

export interface DnsServer {
  readonly host: string;
  readonly port: number;
}

/** Reads `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or `[2001:db8::1]:5353`; null for anything else. */
export function readDnsServer(value: string): DnsServer | null {
  const [, host = "", port = "53"] = /^\[?(.+?)\]?(?::(\d+))?$/.exec(isIP(value) === 6 ? `[${value}]` : value) ?? [];
  return isIP(host) > 0 && Number(port) >= 1 && Number(port) <= 65_535 ? { host, port: Number(port) } : null;
}

function faultOfDnsServer(value: string): string | undefined {
  return readDnsServer(value) === null ? "is not an IP address with or without a port" : undefined;
}
