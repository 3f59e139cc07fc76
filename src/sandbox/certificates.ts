import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// In order: Debian and Alpine, Fedora and RHEL, openSUSE, Arch and others.
const systemBundles = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** Returns the CA bundle that sandboxes trust: the system's, with `caFiles` appended; null if there are none. */
export function trustedCertificates(stateDir: string, ...caFiles: readonly (string | undefined)[]): string | null {
  const system = systemBundles.find((path) => existsSync(path)) ?? null;
  const given = caFiles.filter((path) => path !== undefined);
  if (given.length === 0) return system;
  const text = [...(system === null ? [] : [system]), ...given]
    .map((path) => readFileSync(path, "utf8").trim())
    .join("\n");
  const path = join(stateDir, "ca-certificates.pem");
  mkdirSync(stateDir, { recursive: true });
  writeFileSync(`${path}.${process.pid}`, `${text}\n`, { mode: 0o644 });
  renameSync(`${path}.${process.pid}`, path);
  return path;
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

/** Returns the environment variables that point OpenSSL, Node, curl, git, pip, Python's requests and Go to a CA bundle. */
export function certificateVariables(path: string): Record<string, string> {
  const names = [
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
  ];
  return Object.fromEntries(names.map((name) => [name, path]));
}
