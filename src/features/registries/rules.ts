import { dockerHub } from "../../contract/image-name.ts";
import { isPrivateAddress } from "../../kit/reachable-addresses.ts";

/** Returns the canonical spelling of a registry's host; Docker Hub has several. */
export function normalizedHost(host: string): string {
  return ["index.docker.io", "registry-1.docker.io", "registry.hub.docker.com", "hub.docker.com"].includes(host)
    ? dockerHub
    : host;
}

/**
 * Returns why this host's name cannot be a registry on the internet; undefined when it can. `allowed` lists registries in private networks
 * that the operator permits. A name that only resolves to a private address is refused by the build that looks it up.
 */
export function privateHostProblem(host: string, allowed: readonly string[]): string | undefined {
  if (allowed.includes(host)) return undefined;
  // Normalizes the spellings of an address, such as `127.1`.
  const url = URL.parse(`https://${host}`);
  if (url === null) return `${host} is no host with a port from 1 to 65535.`;
  const name = url.hostname;
  const isLocal = !name.includes(".") || /\.(?:local|localhost|internal|lan|home\.arpa)$/.test(name);
  if (!isPrivateAddress(name) && !isLocal) return undefined;
  return `${host} is in a private network. The operator's setting BERTH_PRIVATE_REGISTRIES allows registries there.`;
}
