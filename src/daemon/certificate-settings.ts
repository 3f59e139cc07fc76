import { isIP } from "node:net";
import { zoneOf } from "../features/domains/domains.ts";
import type { Log } from "../kit/log.ts";
import type { CertificateIssuer } from "../ports/certificate-issuer.ts";
import type { CertificateSettings } from "../reconcile/certificates/settings.ts";
import type { Config } from "./config.ts";
import { openOwnCertificates } from "./own-certificates.ts";
import { StartRefused } from "./start-refused.ts";

/** Returns the certificate settings: the ACME directory, ports, hostnames, HSTS and the operator's own certificate files. */
export function certificateSettingsOf(config: Config, log: Log): CertificateSettings {
  return {
    directory: directoryOf(config),
    weeklyFirsts: config.acmeWeeklyFirsts,
    httpPort: config.acmeHttpPort,
    probe: config.acmeProbe,
    // Tests set port 0 (any free port) and have no control plane behind the edge.
    control:
      hasHttps(config) && config.httpPort > 0 ? { host: localAddress(config.listen), port: config.httpPort } : null,
    controlHost: publicName(config.host),
    appsDomain: publicName(config.domain),
    hsts: config.hsts,
    own: openOwnCertificates(config.certificateFiles, log),
  };
}

/** Returns whether this installation can have certificates, so that its edge listens for HTTPS. */
export function hasHttps({ acmeDirectory, certificateFiles }: Config): boolean {
  return acmeDirectory !== null || certificateFiles.length > 0;
}

export async function certificateIssuerOf(config: Config): Promise<CertificateIssuer | null> {
  const directory = directoryOf(config);
  if (directory === null) return null;
  const { acmeEmail: email, acmeCaFile: caFile, acmeAccountId: kid, acmeAccountKey: hmacKey } = config;
  if ((kid === null) !== (hmacKey === null))
    throw new StartRefused("BERTH_ACME_EAB_ID and BERTH_ACME_EAB_KEY belong together: set both or neither.");
  // Loaded only by installations that order certificates: it is a fifth of all modules and of their loading time.
  const { createAcmeIssuer } = await import("../adapters/issuer-acme/acme-issuer.ts");
  return createAcmeIssuer({ directory, email, caFile, externalAccount: kid && hmacKey ? { kid, hmacKey } : null });
}

const known: Readonly<Record<string, string>> = {
  letsencrypt: "https://acme-v02.api.letsencrypt.org/directory",
  "letsencrypt-staging": "https://acme-staging-v02.api.letsencrypt.org/directory",
};

function directoryOf({ acmeDirectory: given }: Config): string | null {
  const url = given === null ? null : (known[given] ?? given);
  if (url !== null && URL.parse(url)?.protocol !== "https:")
    throw new StartRefused("BERTH_ACME_DIRECTORY must be letsencrypt, letsencrypt-staging or an https URL.");
  return url;
}

/** Returns the name in lower case; null if no authority signs it, such as `localhost` or an IP address. */
function publicName(name: string): string | null {
  const plain = name.toLowerCase().replace(/\.$/, "");
  return isIP(plain) > 0 || /(^|\.)localhost$/.test(plain) || zoneOf(plain) === null ? null : plain;
}

function localAddress(listen: string): string {
  if (listen === "0.0.0.0") return "127.0.0.1";
  return listen === "::" ? "::1" : listen;
}
