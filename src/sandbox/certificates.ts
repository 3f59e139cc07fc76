import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../kit/whole-file.ts";
import { javaTrustStore } from "./java-trust-store.ts";

// In order: Debian and Alpine, Fedora and RHEL, openSUSE, Arch and others.
const systemBundles = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** Files with the certificates that applications and builds trust. */
export interface TrustedCertificates {
  /** A bundle for everything but Java. */
  readonly pem: string;
  /** A trust store for Java; null where Java's own needs no addition. */
  readonly java: string | null;
}

/** Returns what sandboxes trust: the system's CA bundle, with `caFiles` appended; null if there are none. */
export function trustedCertificates(
  stateDir: string,
  ...caFiles: readonly (string | undefined)[]
): TrustedCertificates | null {
  const system = systemBundles.find((path) => existsSync(path)) ?? null;
  const given = caFiles.filter((path) => path !== undefined);
  if (given.length === 0) return system === null ? null : { pem: system, java: null };
  const paths = new Set([...(system === null ? [] : [system]), ...given]);
  const text = [...paths].map((path) => readFileSync(path, "utf8").trim()).join("\n");
  const [pem, java] = [join(stateDir, "ca-certificates.pem"), join(stateDir, "ca-certificates.jks")];
  mkdirSync(stateDir, { recursive: true });
  replaceFile(pem, `${text}\n`, { mode: 0o644 });
  replaceFile(java, javaTrustStore(text), { mode: 0o644 });
  return { pem, java };
}

/**
 * Returns the environment variable that points libpq to a CA bundle, for an environment whose database wants its certificate checked. Elsewhere
 * it is left out: libpq would check certificates although a connection string asks for `require` alone.
 */
export function databaseCertificateVariables(
  path: string,
  { PGSSLMODE: mode }: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return mode?.startsWith("verify-") ? { PGSSLROOTCERT: path } : {};
}

/** Returns the environment variables that point OpenSSL, Node, curl, git, pip, Python's requests, Go and Java to certificates. */
export function certificateVariables({ pem, java }: TrustedCertificates): Record<string, string> {
  const names = [
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
  ];
  return {
    ...Object.fromEntries(names.map((name) => [name, pem])),
    ...(java === null ? {} : { JAVA_TOOL_OPTIONS: `-Djavax.net.ssl.trustStore=${java}` }),
  };
}
