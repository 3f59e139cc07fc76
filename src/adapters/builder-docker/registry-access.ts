import { lookup } from "node:dns/promises";
import { isIPv4 } from "node:net";
import { isPrivateAddress } from "../../kit/reachable-addresses.ts";
import type { RegistryLogin } from "../../ports/builder.ts";

/** Where a registry is, as builds reach it: a network of builds has IPv4 alone. */
export interface RegistryPlace {
  readonly address: string;
  readonly port: number;
}

/** The places of registries by their names, `host[:port]`. A name without an address has none. */
export async function addressesOf(hosts: readonly string[]): Promise<readonly RegistryPlace[]> {
  return (await Promise.all(hosts.map(placesOf))).flat();
}

async function placesOf(host: string): Promise<readonly RegistryPlace[]> {
  const [name = "", port = "443"] = host.split(":");
  if (isIPv4(name)) return [{ address: name, port: Number(port) }];
  const found = await lookup(name, { all: true, family: 4 }).catch(() => []);
  return found.map(({ address }) => ({ address, port: Number(port) }));
}

/** A registry whose name leads into a private network. */
export type RefusedLogin = Pick<RegistryLogin, "host">;

/** Splits logins: a password goes into no private network that the operator does not allow, wherever a name leads today. */
export async function admitLogins(logins: readonly RegistryLogin[], allowed: readonly string[]) {
  const admitted: RegistryLogin[] = [];
  const refused: RefusedLogin[] = [];
  for (const login of logins) {
    const places = allowed.includes(login.host) ? [] : await placesOf(login.host);
    (places.some(({ address }) => isPrivateAddress(address)) ? refused : admitted).push(login);
  }
  return { admitted, refused };
}

/**
 * The login for the host that BuildKit asks for. It calls Docker Hub by the names of its machines.
 */
export function loginFor(logins: readonly RegistryLogin[], host: string): RegistryLogin | undefined {
  const name = /^(?:https:\/\/index\.docker\.io\/v1\/|(?:registry-1|index|auth)\.docker\.io)$/.test(host)
    ? "docker.io"
    : host;
  return logins.find((login) => login.host === name);
}
