import { readTextOrEmpty } from "../kit/whole-file.ts";

/** Contents for a sandbox's /etc/resolv.conf: the host's own, and one that also works where 127.0.0.1 is not the host's. */
export interface Resolvers {
  readonly shared: string;
  readonly isolated: string;
  /** The IPv4 resolvers of `isolated`. */
  readonly addresses: readonly string[];
  /** True if the host names only resolvers on its loopback, so that public ones are used instead. */
  readonly guessed: boolean;
}

// systemd-resolved lists the real servers in the second file and puts only its own 127.0.0.53 in /etc/resolv.conf.
const candidates = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
const publicServers = ["1.1.1.1", "8.8.8.8"];

export function readResolvers(): Resolvers {
  const texts = candidates.map(readTextOrEmpty);
  const usable = texts.find((text) => servers(text).length > 0);
  const addresses = usable === undefined ? publicServers : servers(usable);
  const search = (usable ?? "").split("\n").filter((line) => /^(search|options)\s/.test(line));
  const isolated = `${[...addresses.map((address) => `nameserver ${address}`), ...search].join("\n")}\n`;
  return { shared: texts[0] ?? "", isolated, addresses, guessed: usable === undefined };
}

function servers(text: string): string[] {
  return [...text.matchAll(/^nameserver\s+(\d+\.\d+\.\d+\.\d+)\s*$/gm)].flatMap(([, address = ""]) =>
    address.startsWith("127.") ? [] : [address],
  );
}
