import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import type { HttpsNames } from "../features/certificates/certificates.ts";
import type { Addresses } from "../features/context.ts";
import type { DomainSettings } from "../features/domains/domains.ts";
import type { Config } from "./config.ts";

/**
 * Returns how users reach applications and git: over HTTPS once the edge has a certificate for the name. URLs omit a protocol's default
 * port.
 */
export function addressesOf(config: Config, https: Pick<HttpsNames, "has">): Addresses {
  const withPort = (port: number, usual: number) => (port === usual ? "" : `:${port}`);
  const urlOf = (hostname: string, plainPort: number) =>
    https.has(hostname)
      ? `https://${hostname}${withPort(config.edgeTlsPort, 443)}`
      : `http://${hostname}${withPort(plainPort, 80)}`;
  return {
    appsDomain: config.domain,
    get controlUrl() {
      return urlOf(config.host, config.httpPort);
    },
    appUrl: (hostname) => urlOf(hostname, config.edgePort),
    gitSsh: (org, slug) => `ssh://git@${config.host}${withPort(config.sshPort, 22)}/${org}/${slug}.git`,
    gitHttp: (org, slug) => `${urlOf(config.host, config.httpPort)}/git/${org}/${slug}.git`,
  };
}

/** Returns the addresses that users' hostnames must point to, and the platform's own names, which users can't attach. */
export function domainSettingsOf(config: Config, https: Pick<HttpsNames, "has">): DomainSettings {
  const plain = (name: string) => name.toLowerCase().replace(/\.$/, "");
  const publicAddresses = config.publicAddresses.length > 0 ? config.publicAddresses : addressesOfListen(config.listen);
  const isPublic = config.publicAddresses.length > 0 || publicAddresses.some((address) => !isLoopback(address));
  const graceMs = config.domainGraceHours * 3_600_000;
  return {
    ...{ appsDomain: plain(config.domain), controlHost: plain(config.host), publicAddresses, isPublic, graceMs },
    ordersCertificates: config.acmeDirectory !== null,
    servesHttps: (hostname) => https.has(hostname),
  };
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}

/**
 * Returns the addresses at which clients reach `listen`. For a wildcard address these are the machine's addresses without loopback and
 * link-local ones; 127.0.0.1 if nothing else fits.
 */
function addressesOfListen(listen: string): readonly string[] {
  if (isIP(listen) > 0 && listen !== "0.0.0.0" && listen !== "::") return [listen];
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const outside = all.filter((each) => !each.internal && !each.address.startsWith("fe80:")).map((each) => each.address);
  const usable = listen === "0.0.0.0" ? outside.filter((address) => isIP(address) === 4) : outside;
  return isIP(listen) > 0 && usable.length > 0 ? usable : ["127.0.0.1"];
}
