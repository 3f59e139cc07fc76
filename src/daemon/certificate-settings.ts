import { X509Certificate } from "node:crypto";
import { accessSync, constants, readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { createRfc2136DnsProvider } from "../adapters/dns-provider-rfc2136/rfc2136-dns-provider.ts";
import { zoneOf } from "../features/domains/domains.ts";
import type { Log } from "../kit/log.ts";
import type { CertificateIssuer } from "../ports/certificate-issuer.ts";
import type { DnsProvider } from "../ports/dns-provider.ts";
import type { EdgeCertificate } from "../ports/edge.ts";
import type { CertificateSettings } from "../reconcile/certificates/settings.ts";
import { StartRefused, type Config } from "./config.ts";
import { readDnsServer } from "./network-settings.ts";
import { findProgram } from "./setup/find-program.ts";

/** Returns the certificate settings: the ACME directory, ports, hostnames, HSTS and the operator's own certificate files. */
export function certificateSettingsOf(config: Config, log: Log): CertificateSettings {
  return {
    directory: directoryOf(config),
    // Let's Encrypt issues 50 in seven days for names below one registered domain; renewals do not count.
    weeklyFirsts: 40,
    weeklyPreviews: config.previewCertificates,
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
  const { acmeEmail: email, acmeCaFile: caFile, acmeAccount: externalAccount } = config;
  // Loaded only by installations that order certificates: it is a fifth of all modules and of their loading time.
  const { createAcmeIssuer } = await import("../adapters/issuer-acme/acme-issuer.ts");
  return createAcmeIssuer({ directory, email, caFile, externalAccount });
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

/** Reads the operator's own certificates. The returned function reads them again after a change; if that fails, it logs and returns the last. */
function openOwnCertificates(files: readonly string[], log: Log): () => readonly EdgeCertificate[] {
  let [stamp, certificates] = [stampOf(files), files.map(readCertificate)];
  return () => {
    try {
      const now = stampOf(files);
      if (now !== stamp) certificates = files.map(readCertificate);
      stamp = now;
    } catch (error) {
      log.error(
        { error: (error as Error).message },
        "a certificate file can't be read; Berth keeps serving the certificate that it read before",
      );
    }
    return certificates;
  };
}

function stampOf(files: readonly string[]): string {
  return files
    .map((file) =>
      (({ ino, mtimeMs }) => `${ino}:${mtimeMs}`)(statSync(file, { throwIfNoEntry: false }) ?? { ino: 0, mtimeMs: 0 }),
    )
    .join();
}

const parts = /-----BEGIN ([A-Z ]+)-----[\s\S]*?-----END \1-----/g;

/** Reads a PEM file with a certificate, its issuers and the private key. The hostnames are those in the certificate. */
function readCertificate(file: string): EdgeCertificate {
  const refuse = (why: string): never => {
    throw new StartRefused(`BERTH_CERTIFICATE_FILES: ${file} ${why}.`);
  };
  const blocks = [...readText(file, refuse).matchAll(parts)];
  const chain_pem = blocks
    .filter(([, kind]) => kind === "CERTIFICATE")
    .map(([text]) => `${text}\n`)
    .join("");
  const key_pem = blocks.find(([, kind]) => kind?.endsWith("PRIVATE KEY"))?.[0] ?? refuse("holds no private key");
  if (chain_pem === "") return refuse("holds no certificate");
  const names = (new X509Certificate(chain_pem).subjectAltName ?? "")
    .split(", ")
    .flatMap((each) => (each.startsWith("DNS:") ? [each.slice(4).toLowerCase()] : []));
  return names.length === 0 ? refuse("names no host") : { names, chain_pem, key_pem: `${key_pem}\n` };
}

function readText(file: string, refuse: (why: string) => never): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return refuse(`can't be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** Creates the provider that changes the zone of the apps domain; null if none is configured. Throws `StartRefused` if its settings are wrong. */
export function dnsProviderOf(config: Config): DnsProvider | null {
  const { dnsUpdateServer: server, dnsUpdateKeyFile: keyFile } = config;
  if (server === null && keyFile === null) return null;
  if (server === null || keyFile === null)
    throw new StartRefused(
      "BERTH_DNS_UPDATE_SERVER and BERTH_DNS_UPDATE_KEY_FILE belong together: set both or neither.",
    );
  const at = readDnsServer(server);
  if (at === null)
    throw new StartRefused(`BERTH_DNS_UPDATE_SERVER: ${server} is not an IP address with or without a port.`);
  assertReadable(keyFile);
  const nsupdateBin = findProgram("nsupdate", config.toolEnvironment["PATH"] ?? "");
  if (nsupdateBin === null)
    throw new StartRefused(
      "BERTH_DNS_UPDATE_SERVER is set, but nsupdate was not found on this machine. Install it: apt-get install bind9-dnsutils",
    );
  return createRfc2136DnsProvider({ ...at, keyFile, nsupdateBin, spreadMs: 5000 });
}

function assertReadable(file: string): void {
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw new StartRefused(`BERTH_DNS_UPDATE_KEY_FILE cannot be read: ${(error as Error).message}.`);
  }
}
