import { lookup, Resolver } from "node:dns/promises";
import { isIPv4 } from "node:net";
import { isPrivateAddress } from "../../kit/reachable-addresses.ts";
import type { RegistryLogin } from "../../ports/builder.ts";

/** IPv4 address and port of a registry; the network of builds has no IPv6. */
export interface RegistryPlace {
  readonly address: string;
  readonly port: number;
}

/** Resolves registries, named `host[:port]`. A name that does not resolve adds nothing. */
export async function addressesOf(hosts: readonly string[]): Promise<readonly RegistryPlace[]> {
  return (await Promise.all(hosts.map(placesOf))).flat();
}

async function placesOf(host: string): Promise<readonly RegistryPlace[]> {
  const [name = "", port = "443"] = host.split(":");
  if (isIPv4(name)) return [{ address: name, port: Number(port) }];
  const found = await lookup(name, { all: true, family: 4 }).catch(() => []);
  return found.map(({ address }) => ({ address, port: Number(port) }));
}

/**
 * Returns whether the name servers of a host that a tenant chose answer within some seconds. Node's `lookup`, which also knows the
 * machine's own names, blocks one of the few threads for file operations until they answer.
 */
async function answersSoon(host: string): Promise<boolean> {
  const [name = ""] = host.split(":");
  // A name without a dot is not in public DNS, so no tenant's name server answers for it.
  if (isIPv4(name) || !name.includes(".")) return true;
  const asked = new Resolver({ timeout: 2500, tries: 2 }).resolve4(name);
  return asked.then(
    () => true,
    ({ code }: NodeJS.ErrnoException) => code !== "ETIMEOUT",
  );
}

/** A registry whose name resolves to a private network. */
export type RefusedLogin = Pick<RegistryLogin, "host">;

/** Splits logins into admitted and refused: no password goes into a private network, unless the operator allows that registry. */
export async function admitLogins(logins: readonly RegistryLogin[], allowed: readonly string[]) {
  const admitted: RegistryLogin[] = [];
  const refused: RefusedLogin[] = [];
  for (const login of logins) {
    const isAllowed = allowed.includes(login.host) || !(await answersSoon(login.host));
    const places = isAllowed ? [] : await placesOf(login.host);
    (places.some(({ address }) => isPrivateAddress(address)) ? refused : admitted).push(login);
  }
  return { admitted, refused };
}

/** Returns the registry in BuildKit's message about an image, whose name it always spells with a host. */
export function hostIn(message: string): string {
  return (
    /\b((?:[a-z0-9][a-z0-9-]{0,62}\.)+[a-z0-9-]{2,63}(?::\d{1,5})?|[a-z0-9.-]{1,255}:\d{1,5})\/[a-z0-9]/i.exec(
      message,
    )?.[1] ?? "docker.io"
  );
}

/** Returns the login for the host that BuildKit names; it calls Docker Hub by the names of its machines. */
export function loginFor(logins: readonly RegistryLogin[], host: string): RegistryLogin | undefined {
  const name = /^(?:https:\/\/index\.docker\.io\/v1\/|(?:registry-1|index|auth)\.docker\.io)$/.test(host)
    ? "docker.io"
    : host;
  return logins.find((login) => login.host === name);
}
