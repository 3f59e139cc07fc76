import { BlockList, isIP } from "node:net";

/** Whether an address is of no machine in the internet: of this machine, of a private network, of a link or of a cloud's metadata service. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && privateNetworks.check(address, family === 6 ? "ipv6" : "ipv4");
}

// IANA's registries of special-purpose addresses (RFC 6890), without the documentation's. BlockList reads IPv4 inside of IPv6 itself.
const privateNetworks = new BlockList();
for (const network of [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16"],
  ...["172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3"],
  ...["::/127", "64:ff9b::/96", "64:ff9b:1::/48", "fc00::/7", "fe80::/10", "ff00::/8"],
]) {
  const [address = "", bits] = network.split("/");
  privateNetworks.addSubnet(address, Number(bits), address.includes(":") ? "ipv6" : "ipv4");
}
