/** Returns the key under which an address is counted: an IPv6 address counts as its /64, which one subscriber has. */
export function addressKey(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "").replace(/%.*$/, "");
  if (!plain.includes(":")) return plain;
  const [head = "", tail] = plain.split("::");
  const groups = head.split(":").filter((group) => group !== "");
  const known = tail === undefined ? groups : [...groups, "0", "0", "0", "0"];
  return `${known.slice(0, 4).join(":")}::/64`;
}
