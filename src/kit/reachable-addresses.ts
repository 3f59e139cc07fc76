import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";

/**
 * The special-purpose networks of IANA's registries (RFC 6890 and its updates), which contain the machine itself, its neighbours and a
 * cloud's metadata service. NAT64, SIIT, 6to4 and Teredo embed an IPv4 address, which would bypass the list.
 */
const closed = [
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24",
  "192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32",
  "::/96 ::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7 fe80::/10",
  "fec0::/10 ff00::/8",
].flatMap((line) => line.split(" "));

/** Returns whether a text is a network such as `10.0.0.0/8`, or a single address. */
export function isNetwork(text: string): boolean {
  const [address = "", bits, ...more] = text.split("/");
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

/** Creates the check for addresses that tenants may make the platform connect to. `allowed` are networks that the operator permits. */
export function createAddressGuard(allowed: readonly string[]): (address: string) => boolean {
  const isAllowed = memberOf(allowed);
  return (address) => isAllowed(address) || !(isIP(address) === 0 || isPrivateAddress(address) || isOwn(address));
}

/** Returns why requests to this URL would be refused, as far as its text tells: names are looked up by requests only. */
export function privateUrlProblem(url: string, allowed: readonly string[] = []): string | undefined {
  const { hostname = "" } = URL.parse(url) ?? {};
  // Only URLs of HTTP have their host normalized, which knows every spelling of an address.
  const host = (URL.parse(`http://${hostname}`)?.hostname ?? hostname).replace(/^\[|\]$/g, "");
  const address = /^(?:.+\.)?localhost$/.test(host) ? "127.0.0.1" : host;
  if (isIP(address) === 0 || createAddressGuard(allowed)(address)) return undefined;
  return `${hostname} is in a private network or is the platform's own machine. The operator's setting BERTH_OUTGOING_NETWORKS allows networks there.`;
}

/** Returns whether an address is in one of these networks; false for other text. */
export function isPrivateAddress(address: string): boolean {
  return isIP(address) !== 0 && isClosed(address);
}

// A connection to this machine's own public address bypasses its firewall and reaches everything that listens here.
function isOwn(address: string): boolean {
  const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return own.some((each) => each.address === address);
}

function memberOf(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const [family, most] = isIP(address) === 4 ? (["ipv4", 32] as const) : (["ipv6", 128] as const);
    list.addSubnet(address, bits === undefined ? most : Number(bits), family);
  }
  return (address) => list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

const isClosed = memberOf(closed);
